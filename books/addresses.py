"""Where a version has its books."""

from django.conf import settings
from django.urls import reverse
from rest_framework.request import Request


def of_book(request: Request, pk: int) -> str:
    """The path of a book in the request's own version."""
    return reverse(f"{request.version}:book", kwargs={"book_id": pk})


def url_of_book(request: Request, pk: int) -> str:
    """The same, whole."""
    return f"{settings.PUBLIC_URL}{of_book(request, pk)}"
