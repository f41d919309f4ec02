"""Runs the suite on SQLite and PostgreSQL at the same time: `python -m tests [--both] [arguments of pytest]`.

Without arguments each test runs once, and those of `tests/storage/` on both databases.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from tests.support.postgres import PostgresMissing, start_cluster
from tests.support.programs import list_missing
from tests.support.waiting import PROCESS_TIMEOUT

# `make test` installs them with npm.
NODE_PACKAGES = ("axe-core", "oauth4webapi", "standardwebhooks", "svix")
NODE_MODULES = Path(__file__).parent / "clients" / "node_modules"
# The folder of a test says on which databases it runs: what can differ runs on both.
DIFFERENT = ["tests/storage"]
# The runs on SQLite: each has a file of its own. Those that wait come first, and one that keeps a processor busy last.
RUNS = [["tests/served"], ["tests/browser"], ["tests/api"], ["tests/admin", "tests/rules", "tests/clients"], DIFFERENT]
SQLITE, POSTGRESQL = "SQLite", "PostgreSQL"
# It takes as long as all others of its folder, and runs in CI alone: a whole suite in a tree with the recipes.
RECIPES = "tests/served/library_site/test_recipes.py"
# Files here are in memory, and no commit waits for a disk.
MEMORY, MIN_MEMORY_BYTES = Path("/dev/shm"), 2 * 2**30  # noqa: S108  # the folder in it is ours alone
# The option with which all tests run on both.
BOTH = "--both"
# One output is printed at a time.
PRINTING = Lock()


class Run(NamedTuple):
    """A run of pytest on a database."""

    database: str
    arguments: list[str]

    def describe(self) -> str:
        return " ".join([self.database, *(argument for argument in self.arguments if not argument.startswith("-"))])


def main(arguments: list[str]) -> int:
    missing = [program.name for program in list_missing()]
    missing += [name for name in NODE_PACKAGES if not (NODE_MODULES / name).exists()]
    with provide_folder(), ThreadPoolExecutor() as executor:
        migrating = executor.submit(migrate_file)
        with provide_databases() as urls:
            migrating.result()
            failures = run_suites(urls, arguments)
    for name in missing:
        print(f"\n!!! {name} is not on this machine: what needs it was NOT tested. !!!", flush=True)
    for name in failures:
        print(f"\nThe suite failed: {name}.", flush=True)
    return 1 if failures or (missing and os.environ.get("CI")) else 0


@contextmanager
def provide_folder() -> Iterator[None]:
    """Yields the folder for temporary files and what all runs share."""
    has_memory = MEMORY.exists() and shutil.disk_usage(MEMORY).free > MIN_MEMORY_BYTES
    with tempfile.TemporaryDirectory(dir=MEMORY if has_memory else None) as folder:
        # Others start PostgreSQL as another user.
        Path(folder).chmod(0o755)
        os.environ.setdefault("TMPDIR", folder)
        os.environ["OAUTH_JWKS_FILE"] = str(Path(folder) / "jwks.json")
        os.environ["MIGRATED_FILE"] = str(Path(folder) / "migrated.sqlite3")
        yield


def migrate_file() -> None:
    """Done here once: each run would take seconds to migrate, and the others would disturb each other."""
    subprocess.run(
        [sys.executable, "manage.py", "set_up"],
        env=build_environment(f"sqlite:///{os.environ['MIGRATED_FILE']}"),
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=PROCESS_TIMEOUT,
    )


@contextmanager
def provide_databases() -> Iterator[dict[str, str]]:
    """Yields the URL of each database by its name: DATABASE_URL, or else SQLite and a temporary PostgreSQL."""
    if url := os.environ.get("DATABASE_URL"):
        yield {"the database of DATABASE_URL": url}
        return
    sqlite = {SQLITE: f"sqlite:///{Path('.data/library.sqlite3').absolute()}"}
    try:
        # No test cuts the power or copies the server, so it need not wait for the disk and logs little. Rows that tests
        # roll back are cleared soon: every scan of a table reads them.
        settings = {"fsync": "off", "full_page_writes": "off", "wal_level": "minimal", "max_wal_senders": "0"}
        settings |= {"autovacuum_naptime": "10s", "deadlock_timeout": "100ms"}
        with start_cluster(**settings, autovacuum_vacuum_cost_delay="0", max_connections="200") as cluster:
            yield {**sqlite, POSTGRESQL: cluster.url()}
    except PostgresMissing:
        yield sqlite


def run_suites(urls: dict[str, str], arguments: list[str]) -> list[str]:
    """Runs pytest on all databases at the same time. Returns the runs that failed."""
    print(f"\nThe suite on {' and '.join(urls)}", flush=True)
    runs = choose_runs(list(urls), arguments)
    # Each waits from time to time, so there are two more than processors.
    with ThreadPoolExecutor((os.cpu_count() or 1) + 2) as executor:
        failed = [*executor.map(lambda run: run_pytest(run, urls[run.database]), runs)]
    return [run.describe() for run, has_failed in zip(runs, failed, strict=True) if has_failed]


def choose_runs(names: list[str], arguments: list[str]) -> list[Run]:
    """Returns what pytest runs on each database. What can differ between two runs on both, and all else on SQLite."""
    if arguments or SQLITE not in names:
        return [Run(name, [argument for argument in arguments if argument != BOTH]) for name in names]
    recipes = [[RECIPES]] if os.environ.get("CI") else []
    runs = [Run(SQLITE, [*folders, f"--ignore={RECIPES}"]) for folders in RUNS] + [Run(SQLITE, run) for run in recipes]
    return [*(Run(name, DIFFERENT) for name in names if name == POSTGRESQL), *runs]


def run_pytest(run: Run, url: str) -> bool:
    """Prints the output at the end of the run. Returns whether it has failed."""
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", *run.arguments]
    process = subprocess.Popen(
        command,
        env=build_environment(url),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    output, _ = process.communicate()
    with PRINTING:
        print(f"\n{run.describe()}, {time.monotonic() - began:.0f} s\n{output}", flush=True)
    return bool(process.returncode)


def build_environment(url: str) -> dict[str, str]:
    """Returns an environment without the other variables of this machine, which could change the results."""
    names = ("PATH", "HOME", "LANG", "TMPDIR", "CI", "OAUTH_JWKS_FILE", "MIGRATED_FILE", "COMPILED_PATH")
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    return {**inherited, "DATABASE_URL": url, "SECRET_KEY": secrets.token_urlsafe(64), "LOG_LEVEL": "warning"}


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nInterrupted.")
