"""What every version does for a request about books; the versions themselves are `books.api.v1` and `books.api.v2`."""

from functools import partial
from typing import Any, ClassVar, cast

import msgspec
from django.db import transaction
from django.http import HttpResponse, HttpResponseNotModified
from django.utils import timezone
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ModelViewSet

from books import changes
from books.api.conditional import is_not_modified, require_precondition
from books.api.filters import StrictFilterBackend
from books.api.operations import check_existence_first, parse_book_id
from books.links import book_path
from books.models import Book
from books.read_model import Representation
from library_site.api.query import FieldErrors
from library_site.api.responses import json_response, make_no_content
from library_site.api.viewsets import APIViewSet
from library_site.http.fast_path import MISSING_KEY


class BookViewSet(APIViewSet, ModelViewSet[Book]):
    """A version adds its serializers, its filters, and a paginator that has `read_parameters(request)`."""

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
        self.validate_parameters()
        pk = parse_book_id(book_id)
        if MISSING_KEY in request.META:
            raise changes.BookNotFound
        book, etag = self.read_book(pk, self.get_representation())
        if is_not_modified(request, etag):
            return HttpResponseNotModified(headers={"ETag": etag})
        return json_response(book, headers={"ETag": etag})

    def create(self, request: Request) -> HttpResponse:
        self.validate_parameters()
        book = changes.create_book(self.read_values(request), now=timezone.now())
        return self.book_response(book, status=201, headers={"Location": book_path(request, book.pk)})

    def update(self, request: Request, book_id: str) -> HttpResponse:
        self.validate_parameters()
        values = self.read_values(request)
        book = changes.change_book(
            parse_book_id(book_id), values, partial(self.require_unchanged, request), now=timezone.now()
        )
        return self.book_response(book)

    def destroy(self, request: Request, book_id: str) -> HttpResponse:
        self.validate_parameters()
        with transaction.atomic():
            book = changes.lock_book(parse_book_id(book_id))
            self.require_unchanged(request, book)
            changes.delete_book(book, now=timezone.now())
        return make_no_content()

    def handle_exception(self, exc: Exception) -> Response:
        """An unknown id comes before what else is wrong with a request."""
        try:
            if "book_id" in self.kwargs:
                check_existence_first(self.kwargs["book_id"], exc)
        except Exception as error:
            return super().handle_exception(error)
        return super().handle_exception(exc)

    def get_parameter_errors(self) -> FieldErrors:
        """Returns the problems of the query, without those of filters."""
        return cast("Any", self.paginator).read_parameters(self.request) if self.action == "list" else {}

    def validate_parameters(self) -> None:
        """Raises ValidationError, and what else a version raises. Nothing can be wrong with an empty query."""
        if self.request.META["QUERY_STRING"]:
            self.validate_query()

    def validate_query(self) -> None:
        """Raises ValidationError, and what else a version raises."""
        if problems := self.get_parameter_errors():
            raise ValidationError(problems)

    def get_representation(self) -> Representation:
        """Returns the representation that the answer uses. To be called after `validate_parameters`."""
        return self.representation

    def require_unchanged(self, request: Request, book: Book) -> None:
        """Raises PreconditionFailed if the request asks for another state of the book."""
        require_precondition(request, self.make_etag(book.pk, book.version))

    def book_response(self, book: Book, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
        headers = {"ETag": self.make_etag(book.pk, book.version), **(headers or {})}
        return json_response(self.representation.to_struct(book), status, headers)

    @classmethod
    def read_book(cls, pk: int, representation: Representation) -> tuple[msgspec.Struct, str]:
        """Returns the struct of a book and its ETag. Raises BookNotFound."""
        match = representation.find_book(pk)
        if not match:
            raise changes.BookNotFound
        book, version = match
        return book, cls.make_etag(pk, version)

    @classmethod
    def make_etag(cls, pk: int, version: int) -> str:
        return f'"{cls.etag_prefix}-{pk}-{version}"'
