"""For statements of our own, where Django's take longer to put together than to carry out."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection

# As Django's Now(), so many seconds from now.
FROM_NOW = {
    "postgresql": "STATEMENT_TIMESTAMP() + INTERVAL '{} seconds'",
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', '+{} seconds')",
}


def from_now(seconds: int) -> str:
    return FROM_NOW[connection.vendor].format(seconds)


def among(pks: Iterable[int]) -> str:
    """In place of parameters, of which many take a driver long."""
    return ", ".join(map(str, pks)) or "NULL"


def asked(statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def carried_out(statement: str, parameters: Sequence[Any] = ()) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
