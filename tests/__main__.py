"""Runs the suite on SQLite and PostgreSQL at the same time: `python -m tests [--both] [arguments of pytest]`.

Without arguments each test runs once, and those of `tests/storage/` on both databases.
"""

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.postgres import PostgresMissing, start_cluster
from tests.support.programs import list_missing
from tests.support.waiting import PROCESS_TIMEOUT

# `make test` installs them with npm.
NODE_PACKAGES = ("axe-core", "express", "oauth4webapi", "standardwebhooks", "svix")
NODE_MODULES = Path(__file__).parent / "clients" / "node_modules"
# The folder of a test says on which databases it runs: what can differ runs on both.
DIFFERENT = ["tests/storage"]
SHARE_OF_FIRST = ["tests/rules", "tests/api", "tests/admin"]
# Its tests wait for processes, among them the server of PostgreSQL.
SHARE_OF_SECOND = ["tests/served", "tests/browser", "tests/clients"]
# It takes as long as all others of its folder, and runs in CI alone: a whole suite in a tree with the recipes.
RECIPES = "tests/served/library_site/test_recipes.py"
# The option with which all tests run on both.
BOTH = "--both"


def main(arguments: list[str]) -> int:
    missing = [program.name for program in list_missing()]
    missing += [name for name in NODE_PACKAGES if not (NODE_MODULES / name).exists()]
    with provide_databases() as urls:
        failures = run_suites(urls, arguments)
    for name in missing:
        print(f"\n!!! {name} is not on this machine: what needs it was NOT tested. !!!", flush=True)
    for name in failures:
        print(f"\nThe suite failed on {name}.", flush=True)
    return 1 if failures or (missing and os.environ.get("CI")) else 0


@contextmanager
def provide_databases() -> Iterator[dict[str, str]]:
    """Yields the URL of each database by its name: DATABASE_URL, or else SQLite and a temporary PostgreSQL."""
    if url := os.environ.get("DATABASE_URL"):
        yield {"the database of DATABASE_URL": url}
        return
    sqlite = {"SQLite": f"sqlite:///{Path('.data/library.sqlite3').absolute()}"}
    try:
        # No test cuts the power, so the server need not wait for the disk. Rows that tests roll back are cleared soon:
        # every scan of a table reads them.
        settings = {"fsync": "off", "full_page_writes": "off", "autovacuum_naptime": "2s", "deadlock_timeout": "100ms"}
        with start_cluster(**settings, autovacuum_vacuum_cost_delay="0", max_connections="200") as cluster:
            yield {**sqlite, "PostgreSQL": cluster.url()}
    except PostgresMissing:
        yield sqlite


def run_suites(urls: dict[str, str], arguments: list[str]) -> list[str]:
    """Runs pytest on all databases at the same time and prints each output at its end.

    Returns the names of the databases on which it failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        first, *_ = urls
        os.environ["OAUTH_JWKS_FILE"] = str(Path(folder) / "jwks.json")
        for command in (["rotate_signing_key"], ["collectstatic", "--noinput", "-v0"]):
            # Done here because the suites would disturb each other.
            command = [sys.executable, "manage.py", *command]
            subprocess.run(
                command,
                env=build_environment(urls[first]),
                check=True,
                stdout=subprocess.DEVNULL,
                timeout=PROCESS_TIMEOUT,
            )
        print(f"\nThe suite on {' and '.join(urls)}", flush=True)
        both = [argument for argument in arguments if argument != BOTH]
        selections = dict.fromkeys(urls, both) if arguments else choose_tests(list(urls))
        runs = {name: start_pytest(url, selections[name], Path(folder) / name) for name, url in urls.items()}
        for name, run in runs.items():
            run.wait()
            print(f"\n{name}\n{(Path(folder) / name).read_text()}", flush=True)
    return [name for name, run in runs.items() if run.returncode]


def choose_tests(names: list[str]) -> dict[str, list[str]]:
    """Returns pytest's arguments for each database. All run what can differ on them, and two share the rest."""
    if len(names) == 1:
        return {names[0]: []}
    first, second = names
    recipes = [RECIPES] if os.environ.get("CI") else []
    return {
        first: [*DIFFERENT, *SHARE_OF_FIRST, *recipes],
        second: [*DIFFERENT, *SHARE_OF_SECOND, f"--ignore={RECIPES}"],
    }


def start_pytest(url: str, arguments: list[str], output: Path) -> "subprocess.Popen[bytes]":
    with output.open("w") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments], env=build_environment(url), stdout=file, stderr=file
        )


def build_environment(url: str) -> dict[str, str]:
    """Returns an environment without the other variables of this machine, which could change the results."""
    names = ("PATH", "HOME", "LANG", "TMPDIR", "CI", "OAUTH_JWKS_FILE", "COMPILED_PATH")
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    return {**inherited, "DATABASE_URL": url, "SECRET_KEY": secrets.token_urlsafe(64), "LOG_LEVEL": "warning"}


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nInterrupted.")
