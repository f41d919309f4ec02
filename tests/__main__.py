"""The whole suite on each database, on all of them at once: `python -m tests [pytest's arguments]`."""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.postgres import PostgresMissing, throwaway_cluster

TOOLS = {"Chromium": "chromium", "Node": "node", "Redis": "redis-server"}
# What `make test` installs with npm.
OAUTH4WEBAPI = Path(__file__).parent / "clients" / "node_modules" / "oauth4webapi"


def main(arguments: list[str]) -> int:
    missing = [name for name, command in TOOLS.items() if not shutil.which(command)]
    if not OAUTH4WEBAPI.exists():
        missing.append("oauth4webapi")
    with databases() as urls:
        if urls.keys() == {"SQLite"}:
            missing.append("PostgreSQL")
        failed = suites(urls, arguments)
    for name in missing:
        print(f"\n!!! {name} is not on this machine: what needs it was NOT tested. !!!", flush=True)
    for name in failed:
        print(f"\nThe suite failed on {name}.", flush=True)
    return 1 if failed or (missing and os.environ.get("CI")) else 0


@contextmanager
def databases() -> Iterator[dict[str, str]]:
    """The address of each, by a name to speak of it: that of DATABASE_URL, else SQLite and a throw-away PostgreSQL."""
    if url := os.environ.get("DATABASE_URL"):
        yield {"the database of DATABASE_URL": url}
        return
    sqlite = {"SQLite": f"sqlite:///{Path('.data/library.sqlite3').absolute()}"}
    try:
        # The suite kills no machine, so it need not wait for the disk.
        with throwaway_cluster(fsync="off", full_page_writes="off", max_connections="200") as cluster:
            yield {**sqlite, "PostgreSQL": cluster.url()}
    except PostgresMissing:
        yield sqlite


def suites(urls: dict[str, str], arguments: list[str]) -> list[str]:
    """Runs pytest on all databases at once, and shows each when it is done; answers the names of those it failed on."""
    with tempfile.TemporaryDirectory() as folder:
        first, *_ = urls
        os.environ["OAUTH_JWKS_FILE"] = str(Path(folder) / "jwks.json")
        for command in (["rotate_signing_key"], ["collectstatic", "--noinput", "-v0"]):
            # Before the suites do, which would be in each other's way.
            subprocess.run([sys.executable, "manage.py", *command], env=environment(urls[first]), check=True)
        print(f"\nThe suite on {' and '.join(urls)}", flush=True)
        whole = {name: [] if name == first else ["-m", "not once"] for name in urls}
        runs = {name: started(url, arguments or whole[name], Path(folder) / name) for name, url in urls.items()}
        for name, run in runs.items():
            run.wait()
            print(f"\n{name}\n{(Path(folder) / name).read_text()}", flush=True)
    return [name for name, run in runs.items() if run.returncode]


def started(url: str, arguments: list[str], output: Path) -> "subprocess.Popen[bytes]":
    with output.open("w") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments], env=environment(url), stdout=file, stderr=file
        )


def environment(url: str) -> dict[str, str]:
    """Whatever else is set on this machine is not what the tests speak of."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "CI", "OAUTH_JWKS_FILE", "COMPILED_PATH")
    inherited = {key: os.environ[key] for key in kept if key in os.environ}
    return {**inherited, "DATABASE_URL": url, "SECRET_KEY": secrets.token_urlsafe(64), "LOG_LEVEL": "warning"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
