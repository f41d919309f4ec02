"""What a database holds, past Django: in services and benchmarks, whose databases are not this process's."""

import sqlite3
from contextlib import closing
from typing import Any

import psycopg


def asked(database_url: str, statement: str) -> list[tuple[Any, ...]]:
    """The rows, if it has any."""
    with closing(connected(database_url)) as connection, connection:
        cursor = connection.execute(statement)
        rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
        return rows


def connected(database_url: str) -> Any:
    if database_url.startswith("sqlite"):
        return sqlite3.connect(database_url.removeprefix("sqlite:///"), timeout=30)
    return psycopg.connect(database_url)


def counted(database_url: str, condition: str, table: str = "delivery") -> int:
    """How many rows of a table of webhooks are so."""
    statement = f"SELECT count(*) FROM webhooks_{table} WHERE {condition}"  # noqa: S608  # of constants
    [(found,)] = asked(database_url, statement)
    return int(found)
