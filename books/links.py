"""Where a version has its books."""

from functools import lru_cache

from django.conf import settings
from django.urls import get_script_prefix, reverse
from rest_framework.request import Request


def of_book(request: Request, pk: int) -> str:
    """The path of a book in the request's own version."""
    return f"{of_books(str(request.version), get_script_prefix())}/{pk}"


@lru_cache
def of_books(version: str, _prefix: str) -> str:
    """`reverse` goes by the prefix, too."""
    return reverse(f"{version}:books")


def url_of_book(request: Request, pk: int) -> str:
    """The same, whole."""
    return f"{settings.PUBLIC_URL}{of_book(request, pk)}"
