"""Reads the history as clients of version 2 do, and all that is stored of books."""

from typing import Any

import httpx
from django.db import connection, transaction

from books.models import Book, Change
from webhooks.models import Event

CHANGES = "/api/v2/changes"
NOBODY = {"user": None, "app": None, "api_key": None, "source": None}


def list_entries(api: httpx.Client, address: str, key: dict[str, str]) -> list[dict[str, Any]]:
    """Returns the entries of a page."""
    response = api.get(address, headers=key)
    assert response.status_code == 200, response.text
    entries: list[dict[str, Any]] = response.json()["results"]
    return entries


def summarize(entries: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """Returns the version and the kind of each entry."""
    return [(entry["version"], entry["kind"]) for entry in entries]


def read_stored() -> list[Any]:
    """Returns all books, changes and events."""
    return [list(model.objects.order_by("pk").values()) for model in (Book, Change, Event)]


def explain(statement: str, *disabled: str) -> str:
    """Returns the plan of a statement that was captured. PostgreSQL does without these ways, as among many rows."""
    keyword = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with transaction.atomic(), connection.cursor() as cursor:
        for name in disabled if connection.vendor == "postgresql" else ():
            cursor.execute(f"SET LOCAL enable_{name} = off")
        cursor.execute(f"{keyword} {statement}".replace("%", "%%"))
        return "".join(f"{row[-1]}\n" for row in cursor.fetchall())
