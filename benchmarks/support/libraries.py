"""Starts libraries on both databases, and a receiver of their deliveries, on this machine."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.competitors import ROOT, build_environment
from tests.support.postgres import Cluster, start_cluster
from tests.support.sql import fetch_all

# Seconds before a wait fails.
WAIT_TIMEOUT = 600
CREATE_ENDPOINT_CODE = """
from tests.support.endpoints import create_endpoint, create_owner
create_endpoint(create_owner(), url="http://127.0.0.1:{port}/")
"""


class WaitTimedOut(Exception):
    """The condition is not true in time."""


@dataclass(frozen=True)
class Receiver:
    port: int
    log: Path

    def list_events(self) -> list[str]:
        """Returns the ids of the events that it received, once for each time."""
        return [line.split()[1].replace("-", "") for line in self.log.read_text().splitlines()]


@dataclass(frozen=True)
class Library:
    url: str
    environment: dict[str, str]
    # None on SQLite.
    cluster: Cluster | None

    def run_command(self, *command: str) -> str:
        """Returns the output of a management command."""
        return subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=ROOT,
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=WAIT_TIMEOUT,
        ).stdout

    def run_code(self, code: str) -> str:
        return self.run_command("shell", "-v0", "-c", code)

    def execute_sql(self, statement: str) -> list[tuple[Any, ...]]:
        return fetch_all(self.url, statement)

    def count(self, statement: str) -> int:
        """Returns the one number of a query."""
        return int(self.execute_sql(statement)[0][0])


@contextmanager
def start_receiver() -> Iterator[Receiver]:
    with tempfile.TemporaryDirectory(prefix="library-receiver-") as folder:
        log = Path(folder) / "log"
        command = [sys.executable, "-m", "benchmarks.support.receiver", str(log)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            output: Any = process.stdout
            try:
                yield Receiver(int(output.readline()), log)
            finally:
                process.kill()


@contextmanager
def create_postgresql_library() -> Iterator[Library]:
    with start_cluster(shared_buffers="256MB", max_connections="100") as cluster:
        yield migrate_library(cluster.url(), cluster)


@contextmanager
def create_sqlite_library() -> Iterator[Library]:
    with tempfile.TemporaryDirectory(prefix="library-sqlite-") as folder:
        yield migrate_library(f"sqlite:///{folder}/library.sqlite3", None)


def migrate_library(url: str, cluster: Cluster | None) -> Library:
    environment = build_environment(url) | {"WEBHOOKS_ALLOW_PRIVATE": "true", "LIBRARY_ACCESS": "open"}
    library = Library(url, environment, cluster)
    library.run_command("migrate", "-v0")
    return library


LIBRARIES_BY_DATABASE = {"PostgreSQL": create_postgresql_library, "SQLite": create_sqlite_library}


def wait_until(condition: Callable[[], bool], seconds: float = WAIT_TIMEOUT, pause: float = 0.05) -> None:
    """Raises WaitTimedOut."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise WaitTimedOut
        time.sleep(pause)
