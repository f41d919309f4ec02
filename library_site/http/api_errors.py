"""The content of errors, independent of the format of a version."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from django.db import NotSupportedError
from django.http import HttpRequest
from rest_framework.exceptions import APIException
from rest_framework.request import Request

INVALID_MESSAGE = "The request is not valid"


class FieldError(NamedTuple):
    """One error in a request; `place` is path, query or body, `code` is REST framework's."""

    place: str
    field: str
    message: str
    code: str


class ErrorContent(NamedTuple):
    """The content of an error; `code` is REST framework's, for errors that the status alone does not identify."""

    status: int
    message: str
    errors: Sequence[FieldError] = ()
    headers: Mapping[str, str] = {}
    code: str = ""


class RefusedWrite(NotSupportedError):
    """Code wrote what has rules of its own. The message says what to call, also on the page of a person."""


class APIError(APIException):
    """The library rejects the request. What is below the API raises it, too: a page shows its message."""

    default_detail: str
    headers: ClassVar[Mapping[str, str]] = {}
    # Whether a retry of the request may succeed. If so, the error is not stored for Idempotency-Key.
    is_temporary: ClassVar[bool] = False

    def get_content(self, request: HttpRequest | Request) -> ErrorContent:
        return ErrorContent(self.status_code, str(self.detail), headers=self.headers)
