"""Where a version has its books."""

from functools import lru_cache

from django.conf import settings
from django.urls import get_script_prefix, reverse
from rest_framework.request import Request


def book_path(request: Request, pk: int) -> str:
    """The path of a book in the request's own version."""
    return f"{list_path(str(request.version), get_script_prefix())}/{pk}"


@lru_cache
def list_path(version: str, _prefix: str) -> str:
    """`reverse` goes by the prefix, too."""
    return reverse(f"{version}:books")


def book_url(request: Request, pk: int) -> str:
    """The same, whole."""
    return f"{settings.PUBLIC_URL}{book_path(request, pk)}"
