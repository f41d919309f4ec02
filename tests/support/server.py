"""Serves the library as operators do: `manage.py serve` with its own seeded database on a free port."""

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import httpx
import psycopg
from django.db import connection
from psycopg import sql

from library_site.db.sql import execute
from tests.support.forked_commands import ForkedProcess, run_forked
from tests.support.sql import count_rows, fetch_all
from tests.support.waiting import PROCESS_TIMEOUT

SEEDED_BOOK_COUNT = 400
# By Python, Prometheus' client, the views of REST framework, and the signing keys.
READ_WHEN_LOADED = {"PYTHONPATH", "TZ", "METRICS_TOKEN", "API_RATE_LIMIT", "OAUTH_JWKS_FILE"}
# Loading the authorities of the system takes longer than most tests, and no test uses TLS here.
EMPTY_TRUST_STORE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Service(NamedTuple):
    url: str
    database_url: str
    process: "subprocess.Popen[bytes] | ForkedProcess"
    log: Path

    def open_client(self) -> httpx.Client:
        """Returns a client that connects again for up to 31 seconds while a dead worker is replaced."""
        transport = httpx.HTTPTransport(verify=EMPTY_TRUST_STORE, retries=7)
        return httpx.Client(base_url=self.url, transport=transport, timeout=60)

    def fetch_all(self, statement: str) -> list[tuple[Any, ...]]:
        """Runs the statement in the database of the service and returns its rows."""
        return fetch_all(self.database_url, statement)

    def count_rows(self, condition: str, table: str = "delivery") -> int:
        return count_rows(self.database_url, condition, table)


@contextmanager
def serve_library(
    folder: Path, database_url: str | None = None, prefix: Sequence[str] = (), **variables: str
) -> Iterator[Service]:
    """Serves with one process, a copy of the seeded database and a free port.

    `database_url` is another database; `prefix` is a command that runs the server; `variables` are environment
    variables that change the rest.
    """
    database = nullcontext(database_url) if database_url else copy_seeded_database(folder)
    reservation = nullcontext(int(variables["PORT"])) if "PORT" in variables else reserve_port()
    with database as database_url, reservation as port:
        environment = os.environ | {"WEB_CONCURRENCY": "1"} | variables
        environment |= {"DATABASE_URL": database_url, "HOST": "127.0.0.1", "PORT": str(port)}
        with (folder / "log").open("w") as log:
            server = start_serve(environment, prefix, log.fileno())
        service = Service(f"http://127.0.0.1:{port}", database_url, server, folder / "log")
        try:
            wait_for_port(server, port)
            yield service
        finally:
            # Kills the workers too: one that is still starting would not react to SIGTERM.
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def start_serve(
    environment: dict[str, str], prefix: Sequence[str], log: int
) -> "subprocess.Popen[bytes] | ForkedProcess":
    """Starts the server in a copy, unless a command runs it or something reads a variable when it is loaded."""
    # Django itself sets TZ in the process of the tests.
    is_as_loaded = all(environment.get(name) == os.environ.get(name) for name in READ_WHEN_LOADED)
    if not prefix and is_as_loaded:
        return ForkedProcess(environment, "serve", output=log, errors=log)
    command = [*prefix, sys.executable, "manage.py", "serve"]
    return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)


@contextmanager
def reserve_port() -> Iterator[int]:
    """Yields a port where nothing listens. It is bound until the end, so that no other process gets it meanwhile.

    A server can listen on it nevertheless, because a socket that does not listen allows others (socket(7)).
    """
    with socket.socket() as reservation:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            reservation.setsockopt(socket.SOL_SOCKET, option, 1)
        reservation.bind(("127.0.0.1", 0))
        yield reservation.getsockname()[1]


def wait_for_port(server: "subprocess.Popen[bytes] | ForkedProcess", port: int) -> None:
    """Waits until the server answers. Raises TimeoutError after 30 seconds, CalledProcessError if it ends."""
    for _ in range(600):
        # Nobody answers a connection while the server only checks whether the port is free.
        with suppress(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/", timeout=PROCESS_TIMEOUT, verify=EMPTY_TRUST_STORE)
            return
        with suppress(subprocess.TimeoutExpired):
            raise subprocess.CalledProcessError(server.wait(0.05), server.args)
    raise TimeoutError(f"Nothing listens on port {port}.")


@contextmanager
def copy_seeded_database(folder: Path) -> Iterator[str]:
    """Yields the address of a copy of the seeded database, and deletes the copy at the end."""
    if is_sqlite():
        shutil.copy(create_seeded_file(), folder / "library.sqlite3")
        yield f"sqlite:///{folder / 'library.sqlite3'}"
        return
    name = create_database("CREATE DATABASE {} TEMPLATE {}", create_seeded_template())
    yield build_database_url(name)
    drop_database(name)


@contextmanager
def copy_migrated_database(folder: Path) -> Iterator[str]:
    """Yields the address of a copy of the database as migrations have left it, and deletes the copy at the end."""
    if is_sqlite():
        shutil.copy(name_migrated_database(), folder / "library.sqlite3")
        yield f"sqlite:///{folder / 'library.sqlite3'}"
        return
    name = create_database("CREATE DATABASE {} TEMPLATE {}", name_migrated_database())
    yield build_database_url(name)
    drop_database(name)


def keep_migrated_database() -> None:
    """Copies the suite's database as migrations have left it: a service that begins with it saves seconds."""
    if connection.vendor == "sqlite":
        if not Path(name_migrated_database()).exists():
            execute("VACUUM INTO %s", [name_migrated_database()])
        return
    # PostgreSQL copies no database that has connections.
    connection.close()
    execute_on_suite_server("CREATE DATABASE {} TEMPLATE {}", name_migrated_database(), name_test_database())
    atexit.register(drop_database, name_migrated_database())


def name_test_database() -> str:
    return str(connection.settings_dict["NAME"])


def name_migrated_database() -> str:
    """Nothing has this name where `python -m tests` has not migrated and no test has needed the database yet."""
    if connection.vendor == "sqlite" and "MIGRATED_FILE" in os.environ:
        return os.environ["MIGRATED_FILE"]
    return f"{name_test_database()}.migrated"


# The seeded database is made once for all services of a process.
@cache
def create_seeded_file() -> Path:
    file = Path(tempfile.mkdtemp()) / "library.sqlite3"
    atexit.register(shutil.rmtree, file.parent)
    with suppress(FileNotFoundError):
        shutil.copy(name_migrated_database(), file)
    seed_database(f"sqlite:///{file}", is_migrated=file.exists())
    return file


@cache
def create_seeded_template() -> str:
    try:
        name, is_migrated = create_database("CREATE DATABASE {} TEMPLATE {}", name_migrated_database()), True
    except psycopg.errors.InvalidCatalogName:
        name, is_migrated = create_database("CREATE DATABASE {}"), False
    atexit.register(drop_database, name)
    seed_database(build_database_url(name), is_migrated=is_migrated)
    return name


def seed_database(database_url: str, *, is_migrated: bool = False) -> None:
    environment = os.environ | {"DATABASE_URL": database_url}
    if not is_migrated:
        run_command(environment, "migrate", "-v0")
    run_command(environment, "seed_books", "--count", str(SEEDED_BOOK_COUNT))


def is_sqlite() -> bool:
    """Tells whether the suite runs on SQLite."""
    return os.environ["DATABASE_URL"].startswith("sqlite")


def build_database_url(name: str) -> str:
    """Returns the address of another database on the server of the suite."""
    return os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{name}"


def get_suite_url() -> str:
    """Returns the address of the database of this test."""
    name = name_test_database()
    return f"sqlite:///{name}" if is_sqlite() else build_database_url(name)


def get_database_name(url: str) -> str:
    """Returns the name in an address as Django's settings have it."""
    return url.removeprefix("sqlite:///") if is_sqlite() else url.rpartition("/")[2]


def create_database(statement: LiteralString, *names: str) -> str:
    name = f"service_{secrets.token_hex(4)}"
    execute_on_suite_server(statement, name, *names)
    return name


def drop_database(name: str) -> None:
    execute_on_suite_server("DROP DATABASE {} WITH (FORCE)", name)


def execute_on_suite_server(statement: LiteralString, *names: str) -> None:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def run_in_shell(database_url: str, code: str) -> str:
    """Runs the code in a process of its own, in which the library uses this database. Returns what it prints."""
    return run_command(os.environ | {"DATABASE_URL": database_url}, "shell", "-v0", "-c", code)


def run_command(environment: dict[str, str], *command: str) -> str:
    """Returns what the command of `manage.py` prints. Raises CalledProcessError."""
    run = run_forked(environment, *command)
    if run.returncode:
        # Pytest shows no attributes of exceptions.
        print(run.stderr)
    run.check_returncode()
    return run.stdout
