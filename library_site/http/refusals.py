"""Refused requests: what an error says, whatever format a version gives it."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from django.http import HttpRequest
from rest_framework.request import Request


class Problem(NamedTuple):
    """One thing that is wrong with a request; `place` is path, query or body, `code` REST framework's."""

    place: str
    member: str
    message: str
    code: str


class Failure(NamedTuple):
    """The content of an error; `code` is REST framework's, where the status alone does not say which error it is."""

    status: int
    message: str
    problems: Sequence[Problem] = ()
    headers: Mapping[str, str] = {}
    code: str = ""


class Refusal(Exception):
    """A request that the library refuses. A subclass says with which status, message and headers."""

    status: ClassVar[int]
    message: ClassVar[str]
    headers: ClassVar[Mapping[str, str]] = {}

    def to_failure(self, request: HttpRequest | Request) -> Failure:
        return Failure(self.status, self.message, headers=self.headers)
