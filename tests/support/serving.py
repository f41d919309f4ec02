"""The library as operators run it: `manage.py serve` on a seeded database of its own and a free port."""

import atexit
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import httpx
import psycopg
from django.conf import settings
from psycopg import sql

from tests.support.sql import asked, counted

SEEDED = 400
# What no start is without.
SECRETS = {"SECRET_KEY": "a-key-for-this-test-alone", "OAUTH_JWKS_FILE": str(settings.OAUTH_JWKS_FILE)}
# To read those of the system takes longer than most tests, and nothing here is encrypted.
NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Service(NamedTuple):
    url: str
    database_url: str
    process: "subprocess.Popen[bytes]"
    log: Path

    def client(self) -> httpx.Client:
        """Waits for a service whose worker died, up to 31 seconds."""
        transport = httpx.HTTPTransport(verify=NO_AUTHORITIES, retries=7)
        return httpx.Client(base_url=self.url, transport=transport, timeout=60)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """What its database answers."""
        return asked(self.database_url, statement)

    def count(self, condition: str, table: str = "delivery") -> int:
        return counted(self.database_url, condition, table)


@contextmanager
def serving(folder: Path, database_url: str | None = None, **changed: str) -> Iterator[Service]:
    """By one process on a copy of the seeded database and a free port, unless others are named."""
    database = nullcontext(database_url) if database_url else seeded_database(folder)
    with database as database_url, socket.create_server(("127.0.0.1", int(changed.get("PORT", 0)))) as reserved:
        port = str(reserved.getsockname()[1])
        environment = os.environ | {"WEB_CONCURRENCY": "1"} | changed
        environment |= {"DATABASE_URL": database_url, "HOST": "127.0.0.1", "PORT": port}
        reserved.close()
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(
                [sys.executable, "manage.py", "serve"], env=environment, stdout=log, stderr=log, start_new_session=True
            )
        running = Service(f"http://127.0.0.1:{port}", database_url, server, folder / "log")
        try:
            wait_until_it_listens(server, int(port))
            with running.client() as client:
                client.get("/")
            yield running
        finally:
            # With its workers, one of which may still be starting, and would not hear it if it were asked.
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def wait_until_it_listens(server: "subprocess.Popen[bytes]", port: int) -> None:
    """Half a minute at the most, or until it ends."""
    for _ in range(600):
        # Reset where the server only looked whether the port is free.
        with suppress(ConnectionRefusedError, ConnectionResetError), socket.create_connection(("127.0.0.1", port)):
            return
        with suppress(subprocess.TimeoutExpired):
            raise subprocess.CalledProcessError(server.wait(0.05), server.args)


@contextmanager
def seeded_database(folder: Path) -> Iterator[str]:
    """The address of a copy of the seeded database, gone at the end."""
    if on_sqlite():
        shutil.copy(seeded_file(), folder / "library.sqlite3")
        yield f"sqlite:///{folder / 'library.sqlite3'}"
        return
    name = new_database("CREATE DATABASE {} TEMPLATE {}", seeded_name())
    yield beside_the_suites(name)
    drop(name)


# Made once, for all services of a process.
@cache
def seeded_file() -> Path:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    seed(f"sqlite:///{folder}/library.sqlite3")
    return Path(folder) / "library.sqlite3"


@cache
def seeded_name() -> str:
    name = new_database("CREATE DATABASE {}")
    atexit.register(drop, name)
    seed(beside_the_suites(name))
    return name


def seed(database_url: str) -> None:
    environment = os.environ | {"DATABASE_URL": database_url}
    manage(environment, "migrate", "-v0")
    manage(environment, "seed_books", "--count", str(SEEDED))


def on_sqlite() -> bool:
    return os.environ["DATABASE_URL"].startswith("sqlite")


def beside_the_suites(name: str) -> str:
    return os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{name}"


def new_database(statement: LiteralString, *names: str) -> str:
    name = f"service_{secrets.token_hex(4)}"
    on_the_suites(statement, name, *names)
    return name


def drop(name: str) -> None:
    on_the_suites("DROP DATABASE {} WITH (FORCE)", name)


def on_the_suites(statement: LiteralString, *names: str) -> None:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def in_shell(database_url: str, code: str) -> None:
    """Runs it in a process of the library's, on that database."""
    manage(os.environ | {"DATABASE_URL": database_url}, "shell", "-v0", "-c", code)


def manage(environment: dict[str, str], *command: str) -> None:
    subprocess.run([sys.executable, "manage.py", *command], env=environment, check=True, capture_output=True)
