"""Queries the databases of services and benchmarks, to which Django in this process is not connected."""

import sqlite3
from contextlib import closing
from typing import Any

import psycopg


def fetch_all(database_url: str, statement: str) -> list[tuple[Any, ...]]:
    """Runs the statement in a transaction and returns its rows, or none if it returns no rows."""
    with closing(connect(database_url)) as connection, connection:
        cursor = connection.execute(statement)
        rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
        return rows


def connect(database_url: str) -> Any:
    if database_url.startswith("sqlite"):
        return sqlite3.connect(database_url.removeprefix("sqlite:///"), timeout=30)
    return psycopg.connect(database_url)


def count_rows(database_url: str, condition: str, table: str = "delivery") -> int:
    """Returns the number of rows of a table of webhooks that match the condition."""
    statement = f"SELECT count(*) FROM webhooks_{table} WHERE {condition}"  # noqa: S608  # of constants
    [(count,)] = fetch_all(database_url, statement)
    return int(count)
