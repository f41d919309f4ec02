"""The addresses of books in each version."""

from functools import lru_cache

from django.conf import settings
from django.urls import get_script_prefix, reverse
from rest_framework.request import Request


def book_url(request: Request, pk: int) -> str:
    """The absolute URL of a book in the version of the request."""
    return f"{settings.PUBLIC_URL}{book_path(request, pk)}"


def book_path(request: Request, pk: int) -> str:
    """The path of a book in the version of the request."""
    return f"{get_list_path(request)}/{pk}"


def get_list_path(request: Request) -> str:
    """The path of the list in the version of the request."""
    return list_path(str(request.version), get_script_prefix())


@lru_cache
def list_path(version: str, _prefix: str) -> str:
    """The path of the list. The prefix is an argument because the result of `reverse` depends on it."""
    return reverse(f"{version}:books")
