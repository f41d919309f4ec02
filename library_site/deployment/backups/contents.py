"""Counts the rows of a database, to compare a backup with its source."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

COUNT_SQL = sql.SQL("SELECT count(*) FROM {}")
TABLES_SQL = {
    "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
    # Without virtual tables, as those of FTS5, which are derived from others.
    "sqlite": "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    " AND name NOT GLOB 'sqlite_*' ORDER BY 1",
}
Contents = Mapping[str, int]
"""The numbers of rows by table."""


def count_postgresql(connection: psycopg.Connection[Any]) -> dict[str, int]:
    tables = [name for (name,) in connection.execute(TABLES_SQL["postgresql"])]
    statements = {name: COUNT_SQL.format(sql.Identifier(name)) for name in tables}
    return {name: count for name, statement in statements.items() for (count,) in connection.execute(statement)}


def count_sqlite(path: Path) -> dict[str, int]:
    """Raises sqlite3.Error for a damaged file."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
        [(state,), *_] = database.execute("PRAGMA integrity_check")
        if state != "ok":
            raise sqlite3.DatabaseError(state)
        tables = [name for (name,) in database.execute(TABLES_SQL["sqlite"])]
        return {name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables}  # noqa: S608


def describe_differences(expected: Contents, found: Contents) -> list[str]:
    names = sorted(expected.keys() | found.keys())
    return [
        f"{name}: {found.get(name, 'nothing')} instead of {expected.get(name, 'nothing')}"
        for name in names
        if expected.get(name) != found.get(name)
    ]
