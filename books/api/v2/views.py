"""The views of version 2 (specification, Sections 5-7 and 9)."""

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, ClassVar

from django.db import transaction
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.exceptions import ErrorDetail
from rest_framework.request import Request, is_form_media_type
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from books.api import bulk
from books.api.bulk_body import split_body
from books.api.exports import choose_format, export_books
from books.api.filters import BookSearchFilter, get_filters
from books.api.idempotency import idempotent
from books.api.ids import book_path, require_known_book
from books.api.pagination import KeysetPagination
from books.api.serializers import change_read_book
from books.api.v2.documents.books import document_books, document_bulk, document_restore, document_revert
from books.api.v2.serializers import (
    BookChangeSerializer,
    BookCreateSerializer,
    BookReplaceSerializer,
    BulkCreateSerializer,
    BulkDeleteSerializer,
    BulkUpdateSerializer,
    OperationRequestSerializer,
    RevertRequestSerializer,
)
from books.api.views import BookViewSet, read_dry_run
from books.history.actors import get_current_actor, get_or_create_actor
from books.history.states import find_state
from books.models import Actor, Book
from books.permissions import BOOK_ACTIONS, BULK_ACTIONS
from books.read_model import ReadSerializer
from books.serializers import BOOK_EXAMPLE, BookSerializer
from books.writing import changes
from books.writing.signals import build_instance
from books.writing.statements import select_book
from library_site.api.conditions import PreconditionFailed, is_not_modified
from library_site.api.query import FieldErrors, Query, check_parameters, read_list, suggest_names
from library_site.api.responses import encode_json, make_empty_response
from library_site.api.shipped import remember
from oauth.permissions import find_request_credential, require_permission


@remember
@document_books
class BookViewSetV2(BookViewSet):
    serializer_class = BookSerializer
    example = BOOK_EXAMPLE
    body_serializers = {
        "create": BookCreateSerializer,
        "update": BookReplaceSerializer,
        "partial_update": BookChangeSerializer,
        "bulk": bulk.BulkSerializer,
        "revert": RevertRequestSerializer,
    }
    filterset_class = BookSearchFilter
    pagination_class = KeysetPagination
    operations: ClassVar[bulk.ItemSerializers] = {
        "create": BulkCreateSerializer(),
        "update": BulkUpdateSerializer(),
        "delete": BulkDeleteSerializer(),
    }
    operation_serializer: ClassVar[type[Serializer[Any]]] = OperationRequestSerializer

    def check_query(self, query: Request | Query) -> None:
        """Raises UnknownParameter, and ValidationError for a repeated parameter."""
        can_choose = self.action in ("list", "retrieve") and issubclass(
            self.get_response_serializer_class(), ReadSerializer
        )
        shown = ["fields"] if can_choose else []
        check_parameters(query, [*self.list_parameters(), *shown], ["fields"])
        super().check_query(query)

    def find_query_errors(self, query: Request | Query) -> FieldErrors:
        errors = super().find_query_errors(query)
        if names := read_list(query, "fields"):
            suggestions = suggest_names(names, list_fields(self.get_response_serializer_class()))
            unknown = [ErrorDetail(f'"{name}": {message}', "enum") for name, message in suggestions.items()]
            errors |= {"fields": unknown} if unknown else {}
        return errors

    def get_shown_fields(self, query: Request | Query) -> frozenset[str] | None:
        names = read_list(query, "fields")
        return None if names is None else frozenset(names)

    def get_serializer(self, *arguments: Any, **options: Any) -> Any:
        names = self.get_shown_fields(self.request) if self.action in ("list", "retrieve") else None
        return super().get_serializer(*arguments, **options, **({} if names is None else {"only": names}))

    def make_list_etag(self, body: bytes) -> str:
        return f'"{blake2b(body, digest_size=16).hexdigest()}"'

    def list(self, request: Request, *arguments: Any, **options: Any) -> Any:
        if format := choose_format(request.META.get("HTTP_ACCEPT", "")):
            require_permission(find_request_credential(request), "read", frozenset(BOOK_ACTIONS["export"]))
            check_parameters(request, get_filters(self.filterset_class))
            return export_books(self.filter_queryset(self.get_queryset()), request, format)
        response = super().list(request)
        etag = self.make_list_etag(encode_json(response.data))
        if is_not_modified(request, etag):
            return make_empty_response(304, {"ETag": etag})
        response["ETag"] = etag
        return response

    @idempotent
    def create(self, request: Request, *arguments: Any, **options: Any) -> Any:
        return super().create(request, *arguments, **options)

    @document_bulk
    @idempotent
    def bulk(self, request: Request) -> HttpResponse:
        dry_run = read_dry_run(request)
        operations, problems = bulk.parse_items(self.read_values(request)["operations"], self.operations)
        needed = {name for item in operations.values() for name in BULK_ACTIONS[item.op]}
        require_permission(find_request_credential(request), "write", frozenset(needed))
        actor = get_or_create_actor(Actor.Channel.BULK, credential=find_request_credential(request))
        books = self.filter_queryset(self.get_queryset())
        results = bulk.apply_items(operations, problems, books, request, actor, now=timezone.now(), dry_run=dry_run)
        return Response({"dry_run": dry_run, "results": results})

    @document_revert
    def revert(self, request: Request, book_id: str) -> Any:
        """Gives a book the fields that it had at an earlier version."""
        book = self.get_object()
        self.check_query(request)
        values = find_state(book.pk, self.read_values(request)["version"])
        self.require_state(book)
        return self.show(change_read_book(book, values, self.get_state_check()))

    @document_restore
    def restore(self, request: Request, book_id: str) -> Any:
        """Brings a deleted book back, if it is then one of the books that the view shows.

        Raises BookNotFound, BookExists, and PreconditionFailed: a deleted book has no state that If-Match could match.
        """
        pk = self.parse_book_id()
        require_known_book(pk)
        self.check_query(request)
        self.require_shown(pk)
        if there := select_book(pk):
            self.require_state(there)
            raise changes.BookExists
        if "HTTP_IF_MATCH" in request.META:
            raise PreconditionFailed
        with transaction.atomic():
            book = build_instance(changes.restore_book(pk, get_current_actor(), timezone.now()))
            self.require_shown(pk)
        return self.show(book, 201, {"Location": book_path(request, book.id)})

    def has_state(self) -> bool:
        """A deleted book has no state."""
        return super().has_state() and self.action != "restore"

    def require_shown(self, pk: int) -> None:
        """Raises BookNotFound if `get_queryset` hides the book. It is one statement, because others may delete it."""
        shown = self.filter_queryset(self.get_queryset()).order_by().values("pk")
        if Book.objects.filter(pk=pk).exclude(pk__in=shown.filter(pk=pk)).exists():
            raise changes.BookNotFound

    def parse_body(self, request: Request) -> Any:
        """Leaves the items of a bulk request to `parse_slice`."""
        is_bulk = self.action == "bulk" and not is_form_media_type(request.content_type)
        return split_body(request.body) if is_bulk else super().parse_body(request)


@cache
def list_fields(serializer: type[Serializer[Any]]) -> Sequence[str]:
    return list(serializer().fields)
