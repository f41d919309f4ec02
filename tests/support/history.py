"""Reads the history as clients of version 2 do."""

from typing import Any

import httpx
from django.db import connection

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


def explain(statement: str) -> str:
    """Returns the plan of a statement that was captured."""
    keyword = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        cursor.execute(f"{keyword} {statement}".replace("%", "%%"))
        return "".join(f"{row[-1]}\n" for row in cursor.fetchall())
