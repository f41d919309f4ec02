"""The library as operators run it: `manage.py serve` on a fresh, seeded database and a free port."""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import psycopg
from psycopg import sql

SEEDED = 400


class Service(NamedTuple):
    url: str
    database_url: str
    process: "subprocess.Popen[bytes]"
    log: Path

    def client(self) -> httpx.Client:
        """Waits for a service that is still starting: up to 31 seconds until it listens, a minute until it answers."""
        return httpx.Client(base_url=self.url, transport=httpx.HTTPTransport(retries=7), timeout=60)


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[Service]:
    with fresh_database(folder) as database_url, socket.create_server(("127.0.0.1", 0)) as reserved:
        port = str(reserved.getsockname()[1])
        environment = os.environ | settings | {"DATABASE_URL": database_url, "HOST": "127.0.0.1", "PORT": port}
        manage(environment, "migrate", "-v0")
        manage(environment, "seed_books", "--count", str(SEEDED))
        reserved.close()
        with (folder / "log").open("w") as log:
            server = subprocess.Popen([sys.executable, "manage.py", "serve"], env=environment, stdout=log, stderr=log)
        running = Service(f"http://127.0.0.1:{port}", database_url, server, folder / "log")
        try:
            with running.client() as client:
                client.get("/")
            yield running
        finally:
            server.terminate()
            server.wait()


@contextmanager
def fresh_database(folder: Path) -> Iterator[str]:
    """The address of an empty database beside the suite's own, dropped at the end."""
    suites_own = os.environ["DATABASE_URL"]
    if suites_own.startswith("sqlite"):
        yield f"sqlite:///{folder / 'library.sqlite3'}"
        return
    name = f"service_{secrets.token_hex(4)}"
    with psycopg.connect(suites_own, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield suites_own.rpartition("/")[0] + f"/{name}"
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def manage(environment: dict[str, str], *command: str) -> None:
    subprocess.run([sys.executable, "manage.py", *command], env=environment, check=True, capture_output=True)
