"""Turns a DATABASE_URL into Django's settings of that database."""

from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

ENGINE_OPTIONS: dict[str, dict[str, Any]] = {
    "django.db.backends.postgresql": {},
    # FULL costs one fsync per commit; with NORMAL a power failure can lose a committed transaction.
    "django.db.backends.sqlite3": {
        "transaction_mode": "IMMEDIATE",
        # Seconds that a writer waits for its turn; it occupies a thread meanwhile.
        "timeout": 10,
        "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL",
    },
}


def parse_database_url(url: str) -> dict[str, Any]:
    """Returns settings of an SQLite or PostgreSQL database, with persistent connections.

    Raises ImproperlyConfigured for any other.
    """
    try:
        settings: dict[str, Any] = {**dj_database_url.parse(url, conn_max_age=None)}
    except ValueError as error:
        raise ImproperlyConfigured(f"DATABASE_URL: {error}") from error
    if settings.get("ENGINE") not in ENGINE_OPTIONS or settings["NAME"] in ("", ":memory:"):
        raise ImproperlyConfigured("DATABASE_URL takes sqlite:///file or postgresql://user:password@host:port/name.")
    settings["OPTIONS"] = ENGINE_OPTIONS[settings["ENGINE"]] | settings.get("OPTIONS", {})
    return settings
