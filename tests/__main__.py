"""The whole suite on each database: `python -m tests [pytest's arguments]`."""

import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

from tests.postgres import PostgresMissing, throwaway_cluster

TOOLS = {"Chromium": "chromium", "Redis": "redis-server"}


def main(arguments: list[str]) -> int:
    missing = [name for name, command in TOOLS.items() if not shutil.which(command)]
    failed = []
    if url := os.environ.get("DATABASE_URL"):
        failed += suite("the database of DATABASE_URL", url, arguments)
    else:
        failed += suite("SQLite", f"sqlite:///{Path('.data/library.sqlite3').absolute()}", arguments)
        try:
            # The suite kills no machine, so it need not wait for the disk.
            with throwaway_cluster(fsync="off", max_connections="200") as cluster:
                failed += suite("PostgreSQL", cluster.url(), arguments)
        except PostgresMissing:
            missing.append("PostgreSQL")
    for name in missing:
        print(f"\n!!! {name} is not on this machine: what needs it was NOT tested. !!!", flush=True)
    for name in failed:
        print(f"\nThe suite failed on {name}.", flush=True)
    return 1 if failed or (missing and os.environ.get("CI")) else 0


def suite(name: str, url: str, arguments: list[str]) -> list[str]:
    """Runs pytest on one database; answers the names of those on which it failed."""
    print(f"\nThe suite on {name}", flush=True)
    # Whatever else is set on this machine is not what the tests speak of.
    inherited = {key: os.environ[key] for key in ("PATH", "HOME", "LANG", "TMPDIR", "CI") if key in os.environ}
    environment = {**inherited, "DATABASE_URL": url, "SECRET_KEY": secrets.token_urlsafe(64), "LOG_LEVEL": "warning"}
    run = subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment, check=False)
    return [name] if run.returncode else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
