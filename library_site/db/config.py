"""Turns a DATABASE_URL into Django's settings of that database."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import make_conninfo

PROJECT_FOLDER = Path(__file__).resolve().parents[2]
POSTGRESQL, SQLITE = "library_site.db.postgresql", "library_site.db.sqlite"
# The library's backends, by Django's backends, which dj_database_url returns.
ENGINES = {"django.db.backends.postgresql": POSTGRESQL, "django.db.backends.sqlite3": SQLITE}
# Seconds that a writer waits for its turn. It occupies a thread for this time.
SQLITE_TIMEOUT = 10
# Bytes that SQLite leaves of its log (-wal) when it begins it anew. A large transaction, or a long read beside many
# writes, would take its room on the disk for ever.
SQLITE_WAL_LIMIT = 16 * 1024 * 1024
ENGINE_OPTIONS: dict[str, dict[str, Any]] = {
    # Seconds, but milliseconds for tcp_user_timeout. A network that drops all packets is detected after 15 s, also by
    # a worker that waits for a response. On a Unix socket, libpq ignores all but the first.
    POSTGRESQL: {
        "connect_timeout": 2,
        "keepalives_idle": 5,
        "keepalives_interval": 5,
        "keepalives_count": 2,
        "tcp_user_timeout": 15_000,
    },
    # FULL costs one fsync per commit; with NORMAL a power failure can lose a committed transaction.
    SQLITE: {
        "transaction_mode": "IMMEDIATE",
        "timeout": SQLITE_TIMEOUT,
        "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        f" PRAGMA journal_size_limit = {SQLITE_WAL_LIMIT}",
    },
}


def parse_database_url(url: str, process: str = "command", timeouts: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Returns settings of an SQLite or PostgreSQL database, with persistent connections.

    `process` is a part of the application name of connections in PostgreSQL. `timeouts` are parameters of PostgreSQL
    with their seconds; those with 0 are not sent. Raises ImproperlyConfigured for another database.
    """
    try:
        settings: dict[str, Any] = {**dj_database_url.parse(url, conn_max_age=None)}
    except ValueError:
        # Its message lists databases that the library does not support.
        settings = {"NAME": ""}
    settings["ENGINE"] = ENGINES.get(settings.get("ENGINE", ""))
    if settings["ENGINE"] not in ENGINE_OPTIONS or settings["NAME"] in ("", ":memory:"):
        raise ImproperlyConfigured("DATABASE_URL takes sqlite:///file or postgresql://user:password@host:port/name.")
    if settings["ENGINE"] == SQLITE:
        # Otherwise a command that runs in another folder would create a new, empty database there.
        settings["NAME"] = str(PROJECT_FOLDER / settings["NAME"])
    options = settings.get("OPTIONS", {})
    settings["OPTIONS"] = ENGINE_OPTIONS[settings["ENGINE"]] | options
    if settings["ENGINE"] == POSTGRESQL:
        # A pooler may give each FETCH another server, where a process of the same thread ids has a cursor of that name.
        settings["DISABLE_SERVER_SIDE_CURSORS"] = True
        try:
            make_conninfo(**options)
        except ProgrammingError as error:
            # A name that libpq does not know: every connection would fail.
            raise ImproperlyConfigured(f"DATABASE_URL: {error}.") from error
        settings["OPTIONS"] |= build_postgresql_options(process, timeouts or {}, options)
    return settings


def build_postgresql_options(process: str, timeouts: Mapping[str, int], options: Mapping[str, str]) -> dict[str, str]:
    """`options` are those of the DATABASE_URL. They override the others."""
    parameters = [f"-c {name}={seconds}s" for name, seconds in timeouts.items() if seconds]
    if "options" in options:
        parameters.append(options["options"])
    if parameters:
        # PostgreSQL compiles a statement whose estimated cost is high, which takes longer than most statements.
        parameters.insert(0, "-c jit=off")
    return {
        "application_name": f"library-{process}",
        **options,
        **({"options": " ".join(parameters)} if parameters else {}),
    }
