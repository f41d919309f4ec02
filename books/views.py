"""Books over HTTP: the work that every version does. What it makes of it stands in `books.versions`."""

from typing import Any, ClassVar

from django.db import transaction
from django.http import HttpResponse, HttpResponseNotModified
from django.urls import reverse
from django.utils import timezone
from rest_framework.exceptions import ParseError, UnsupportedMediaType, ValidationError
from rest_framework.request import Request
from rest_framework.serializers import Serializer
from rest_framework.settings import api_settings
from rest_framework.viewsets import ModelViewSet

from books import changes
from books.compiled import Representation
from books.conditional import not_modified, require_unchanged
from books.filters import StrictFilterBackend
from books.integers import integer
from books.models import Book
from books.paging import NOT_AN_INTEGER


class BookViewSet(ModelViewSet[Book]):
    """A version names its serializers, its filters, and a paginator that has `problems(request)`."""

    queryset = Book.objects.order_by("pk")
    filter_backends = [StrictFilterBackend]
    lookup_url_kwarg = "book_id"
    body_serializers: ClassVar[dict[str, type[Serializer[Book]]]]
    representation: ClassVar[Representation]
    etag_prefix: ClassVar[str]

    def initial(self, request: Request, *arguments: Any, **options: Any) -> None:
        """Answers 413 and 415 before the action looks for the book; 401, 403 and 429 come first."""
        super().initial(request, *arguments, **options)
        if self.action in self.body_serializers:
            parser = self.get_content_negotiator().select_parser(request, self.get_parsers())
            if not parser:
                raise UnsupportedMediaType(request.content_type)

    def list(self, request: Request) -> HttpResponse:
        page: Any = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return json_response(self.representation.many(page))

    def retrieve(self, request: Request, book_id: str) -> HttpResponse:
        pk = identifier(book_id)
        found = self.representation.find(pk)
        if not found:
            raise changes.BookNotFound
        row, version = found
        etag = self.etag(pk, version)
        if not_modified(request, etag):
            return HttpResponseNotModified(headers={"ETag": etag})
        return json_response(self.representation.one(row), headers={"ETag": etag})

    def create(self, request: Request) -> HttpResponse:
        values = self.body(request)
        with transaction.atomic():
            book = changes.add(values, now=timezone.now())
        location = reverse("book", kwargs={"book_id": book.pk})
        return self.answer(book, status=201, headers={"Location": location})

    def update(self, request: Request, book_id: str) -> HttpResponse:
        try:
            values = self.body(request)
        except ParseError as error:
            require_book(identifier(book_id, {api_settings.NON_FIELD_ERRORS_KEY: [error.detail]}))
            raise
        except ValidationError as error:
            require_book(identifier(book_id, error.detail))
            raise
        pk = identifier(book_id)
        with transaction.atomic():
            book = changes.locked(pk)
            require_unchanged(request, self.etag(book.pk, book.version))
            changes.change(book, values, now=timezone.now())
        return self.answer(book)

    def destroy(self, request: Request, book_id: str) -> HttpResponse:
        with transaction.atomic():
            book = changes.locked(identifier(book_id))
            require_unchanged(request, self.etag(book.pk, book.version))
            changes.remove(book)
        return HttpResponse(status=204)

    def options(self, request: Request, *arguments: Any, **options: Any) -> HttpResponse:
        """REST framework's own answer would describe the serializers; Allow is added to every answer anyway."""
        return HttpResponse(status=204)

    def body(self, request: Request) -> dict[str, Any]:
        """The members that the request may set. Raises ParseError, ValidationError."""
        if request.stream is None:
            raise ParseError("The body is empty.", code="missing")
        serializer = self.body_serializers[self.action](data=request.data)
        serializer.is_valid(raise_exception=True)
        values: dict[str, Any] = serializer.validated_data
        return values

    def answer(self, book: Book, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
        headers = {"ETag": self.etag(book.pk, book.version), **(headers or {})}
        return json_response(self.representation.one(self.representation.row(book)), status, headers)

    def etag(self, pk: int, version: int) -> str:
        return f'"{self.etag_prefix}-{pk}-{version}"'


def identifier(book_id: str, problems: Any = ()) -> int:
    """The path's integer. Raises ValidationError for anything but ASCII digits with an optional minus.

    `problems` are what else is wrong with the request, to be named with it.
    """
    number = integer(book_id)
    if number is None:
        raise ValidationError({"book_id": [NOT_AN_INTEGER], **dict(problems)})
    return number


def require_book(pk: int) -> None:
    """An unknown id outranks what is wrong with a body. Raises BookNotFound."""
    if not Book.objects.filter(pk=pk).exists():
        raise changes.BookNotFound


def json_response(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
    return HttpResponse(body, "application/json", status, headers=headers)
