"""Books over HTTP: the work that every version does. What each makes of it stands in `books.versions`."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, cast

import msgspec
from django.db import transaction
from django.http import HttpResponse, HttpResponseNotModified
from django.utils import timezone
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.viewsets import ModelViewSet

from books import changes
from books.api.conditional import not_modified, require_unchanged
from books.api.filters import StrictFilterBackend
from books.links import of_book
from books.models import Book
from books.read_model import Representation, json_response
from library_site.api.query import NOT_AN_INTEGER, Problems, UnknownParameter
from library_site.api.viewsets import OrderedViewSet, no_content
from library_site.db.integers import integer

# In the environ of a request for a book that was looked for, and is not there.
ABSENT = "library.absent"


class BookViewSet(OrderedViewSet, ModelViewSet[Book]):
    """A version names its serializers, its filters, and a paginator that has `problems(request)`."""

    queryset = Book.objects.order_by("pk")
    filter_backends = [StrictFilterBackend]
    lookup_url_kwarg = "book_id"
    representation: ClassVar[Representation]
    etag_prefix: ClassVar[str]

    def list(self, request: Request) -> HttpResponse:
        page: Any = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        response: HttpResponse = self.get_paginated_response(page)
        return response

    def retrieve(self, request: Request, book_id: str) -> HttpResponse:
        with outranked_by_absence(book_id):
            self.require_parameters()
        pk = identifier(book_id)
        if ABSENT in request.META:
            raise changes.BookNotFound
        shown, etag = self.found(pk, self.get_representation())
        if not_modified(request, etag):
            return HttpResponseNotModified(headers={"ETag": etag})
        return json_response(shown, headers={"ETag": etag})

    def create(self, request: Request) -> HttpResponse:
        self.require_parameters()
        book = changes.create(self.body(request), now=timezone.now())
        return self.answer(book, status=201, headers={"Location": of_book(request, book.pk)})

    def update(self, request: Request, book_id: str) -> HttpResponse:
        with outranked_by_absence(book_id):
            self.require_parameters()
            values = self.body(request)
        book = changes.update(identifier(book_id), values, partial(self.require_unchanged, request), now=timezone.now())
        return self.answer(book)

    def destroy(self, request: Request, book_id: str) -> HttpResponse:
        with outranked_by_absence(book_id):
            self.require_parameters()
        with transaction.atomic():
            book = changes.locked(identifier(book_id))
            self.require_unchanged(request, book)
            changes.remove(book, now=timezone.now())
        return no_content()

    def parameter_problems(self) -> Problems:
        """What is wrong with the query, but for filters."""
        return cast("Any", self.paginator).problems(self.request) if self.action == "list" else {}

    def require_parameters(self) -> None:
        """Raises ValidationError, and what a version refuses besides."""
        if problems := self.parameter_problems():
            raise ValidationError(problems)

    def get_representation(self) -> Representation:
        """What the answer shows of a book; comes after `require_parameters`."""
        return self.representation

    def require_unchanged(self, request: Request, book: Book) -> None:
        """Raises PreconditionFailed."""
        require_unchanged(request, self.etag(book.pk, book.version))

    def answer(self, book: Book, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
        headers = {"ETag": self.etag(book.pk, book.version), **(headers or {})}
        return json_response(self.representation.shown_one(book), status, headers)

    @classmethod
    def found(cls, pk: int, representation: Representation) -> tuple[msgspec.Struct, str]:
        """A book, ready to be encoded, and its tag. Raises BookNotFound."""
        found = representation.find(pk)
        if not found:
            raise changes.BookNotFound
        shown, version = found
        return shown, cls.etag(pk, version)

    @classmethod
    def etag(cls, pk: int, version: int) -> str:
        return f'"{cls.etag_prefix}-{pk}-{version}"'


def identifier(book_id: str, problems: Any = ()) -> int:
    """The path's integer. Raises ValidationError for anything but ASCII digits with an optional minus.

    `problems` are what else is wrong with the request, to be named with it.
    """
    number = integer(book_id)
    if number is None:
        raise ValidationError({"book_id": [NOT_AN_INTEGER], **dict(problems)})
    return number


@contextmanager
def outranked_by_absence(book_id: str) -> Iterator[None]:
    """An unknown id outranks what else is wrong with a request. Raises BookNotFound, ValidationError."""
    try:
        yield
    except ParseError as error:
        require_book(identifier(book_id, {api_settings.NON_FIELD_ERRORS_KEY: [error.detail]}))
        raise
    except (ValidationError, UnknownParameter) as error:
        require_book(identifier(book_id, error.detail))
        raise


def require_book(pk: int) -> None:
    """Raises BookNotFound."""
    if not Book.objects.filter(pk=pk).exists():
        raise changes.BookNotFound
