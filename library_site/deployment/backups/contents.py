"""Counts the rows of a database, to compare a backup with its source."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql

# The newest change shows the age of the data. It is missing if the library has no changes.
NEWEST_SQL: LiteralString = "SELECT max(id) FROM books_change"
COUNT_SQL = sql.SQL("SELECT count(*) FROM {}")
TABLES_SQL = {
    "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
    # FTS5's internal tables are left out: they are derived from the books.
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'books_trigrams*'"
    " AND name NOT GLOB 'sqlite_*' ORDER BY 1",
}
Contents = Mapping[str, int]
"""Rows by table, and the id of the newest change."""


def count_postgresql(connection: psycopg.Connection[Any]) -> dict[str, int]:
    tables = [name for (name,) in connection.execute(TABLES_SQL["postgresql"])]
    counts = {name: fetch_number(connection, COUNT_SQL.format(sql.Identifier(name))) for name in tables}
    return {**counts, "newest change": fetch_number(connection, NEWEST_SQL)}


def fetch_number(connection: psycopg.Connection[Any], statement: LiteralString | sql.Composed) -> int:
    row = connection.execute(statement).fetchone()
    return int(row[0] or 0) if row else 0


def count_sqlite(path: Path) -> dict[str, int]:
    """Raises sqlite3.Error for a damaged file."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
        [(state,), *_] = database.execute("PRAGMA integrity_check")
        if state != "ok":
            raise sqlite3.DatabaseError(state)
        tables = [name for (name,) in database.execute(TABLES_SQL["sqlite"])]
        counts = {name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables}  # noqa: S608
        return {**counts, "newest change": database.execute(NEWEST_SQL).fetchone()[0] or 0}


def describe_differences(expected: Contents, found: Contents) -> list[str]:
    names = sorted(expected.keys() | found.keys())
    return [
        f"{name}: {found.get(name, 'nothing')} instead of {expected.get(name, 'nothing')}"
        for name in names
        if expected.get(name) != found.get(name)
    ]
