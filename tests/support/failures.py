"""Makes the database fail, and builds the error bodies of version 2."""

from contextlib import AbstractContextManager
from typing import Any, NoReturn

from tests.support.connection_faults import wrap_reconnecting
from tests.support.responses import REQUEST_ID


def build_error(code: str, message: str, *details: tuple[str, str], request_id: str = REQUEST_ID) -> dict[str, Any]:
    """Returns the whole body of an error; `details` are pairs of field and message."""
    items = [{"field": field, "message": text} for field, text in details]
    error = {"code": code, "message": message, "requestId": request_id}
    return {"error": error | ({"details": items} if items else {})}


def break_database(failure: Exception) -> AbstractContextManager[None]:
    """Returns a context in which every statement raises this exception."""

    def fail(*_: object) -> NoReturn:
        raise failure

    return wrap_reconnecting(fail)
