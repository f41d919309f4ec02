"""Failures of the database."""

from contextlib import AbstractContextManager
from typing import Any, NoReturn

from django.db import connection

from tests.support.responses import ID


def error(code: str, message: str, *details: tuple[str, str], request_id: str = ID) -> dict[str, Any]:
    """The whole body of an error."""
    listed = [{"field": field, "message": words} for field, words in details]
    told = {"code": code, "message": message, "requestId": request_id}
    return {"error": told | ({"details": listed} if listed else {})}


def broken_database(failure: Exception) -> AbstractContextManager[None]:
    """Until its end, the database answers each statement so."""

    def fail(*_: object) -> NoReturn:
        raise failure

    return connection.execute_wrapper(fail)
