"""The viewset of books. The versions are in `books.api.v1` and `books.api.v2`.

Every hook of REST framework, django-filter and the paginations runs. Shortcuts for speed are in `books.api.compiled`,
which handles no other viewsets than those that ship.
"""

from collections.abc import Callable
from typing import Any, ClassVar, cast

from django.db import IntegrityError
from django.utils import timezone
from django_filters.utils import translate_validation
from rest_framework.exceptions import ErrorDetail, ParseError, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from books.api.filters import BookFilter, ListFilterBackend
from books.api.ids import IsbnInUseByBook, parse_book_id
from books.api.schema import BOOK_ID_PARAMETER
from books.book_values import BookValues
from books.history.actors import get_current_actor
from books.models import Book
from books.permissions import BOOK_ACTIONS
from books.read_model import has_only_conditions
from books.writing import changes
from books.writing.signals import build_instance
from books.writing.statements import select_book
from library_site.api.query import FieldErrors, Query, UnknownParameter, check_parameters, read_boolean
from library_site.api.viewsets import ResourceViewSet
from library_site.http.api_errors import APIError
from library_site.http.transfer.compression import CONDITIONS


class BookViewSet(ResourceViewSet):
    """A version declares its serializers, filters and pages."""

    noun = "book"
    not_found = changes.BookNotFound
    path_parameters = [BOOK_ID_PARAMETER]
    required_permissions = BOOK_ACTIONS
    queryset = Book.objects.order_by("pk")
    filter_backends = [ListFilterBackend]
    lookup_url_kwarg = "book_id"
    filterset_class: ClassVar[type[BookFilter]]

    def check_query(self, query: Request | Query) -> None:
        """Raises ValidationError, which names all errors of the query. This version ignores unknown parameters."""
        errors = self.find_query_errors(query)
        if errors and self.action == "list":
            filterset = cast("Any", ListFilterBackend()).get_filterset(query, self.get_queryset(), self)
            if filterset and not filterset.is_valid():
                errors |= cast("Any", translate_validation)(filterset.errors).detail
        if errors:
            raise ValidationError(errors)

    def find_query_errors(self, query: Request | Query) -> FieldErrors:
        """Returns the errors of parameters that are no filters. Another pagination raises them when it reads."""
        find_errors = getattr(self.paginator, "find_errors", None) if self.action == "list" else None
        return find_errors(query) if find_errors else {}

    def get_shown_fields(self, query: Request | Query) -> frozenset[str] | None:
        """Returns the fields that a response shows, or None for all. They exist."""
        return None

    def make_list_etag(self, body: bytes) -> str | None:
        """Returns the ETag of a page, or None if lists of this version have none."""
        return None

    def get_object(self) -> Any:
        """Raises BookNotFound, and ValidationError, which names all errors of a request with an invalid id."""
        if self.lookup_field != "pk":
            return super().get_object()
        pk = self.parse_book_id()
        books = self.filter_queryset(self.get_queryset())
        if books.query.where or not has_only_conditions(books):
            book = books.filter(pk=pk).first()
        else:
            # Django takes longer to build the statement than a database to run it.
            row = select_book(pk)
            book = build_instance(row) if row else None
        if not book:
            raise changes.BookNotFound
        self.check_object_permissions(self.request, book)
        return book

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "require_state": self.get_state_check()}

    def get_state_check(self) -> Callable[[BookValues], None] | None:
        """Returns the check of the row that a write changes; None if the request has no conditions."""
        if self.request.META.keys().isdisjoint(CONDITIONS):
            return None
        return lambda row: self.require_state(build_instance(row))

    def perform_update(self, serializer: Any) -> None:
        """Raises BookNotFound, IsbnInUse, ConcurrentChange, PreconditionFailed."""
        serializer.save()

    def perform_destroy(self, instance: Any) -> None:
        """Raises BookNotFound, BookProtected, ConcurrentChange, PreconditionFailed."""
        changes.delete_book(instance.id, self.get_state_check(), get_current_actor(), timezone.now())

    def parse_book_id(self) -> int:
        """Raises ValidationError."""
        return parse_book_id(self.kwargs[self.lookup_url_kwarg or self.lookup_field], self.find_other_errors)

    def find_other_errors(self) -> FieldErrors:
        try:
            self.check_query(self.request)
            if self.takes_body():
                self.validate_body(self.request)
        except ParseError as error:
            return {api_settings.NON_FIELD_ERRORS_KEY: [cast("ErrorDetail", error.detail)]}
        except (ValidationError, UnknownParameter) as error:
            return cast("FieldErrors", error.detail)
        return {}

    def handle_exception(self, exc: Exception) -> Response:
        # The model raises Django's exceptions instead of the writers'.
        if isinstance(exc, IntegrityError | Book.DoesNotExist) and isinstance(exc.__cause__, APIError):
            exc = exc.__cause__
        if isinstance(exc, changes.IsbnInUse):
            exc = IsbnInUseByBook(exc.isbn, self.get_queryset())
        return super().handle_exception(exc)


def read_dry_run(request: Request) -> bool:
    """Reads the only parameter of the query. Raises UnknownParameter, ValidationError."""
    check_parameters(request, ["dry_run"])
    dry_run, errors = read_boolean(request, "dry_run")
    if errors:
        raise ValidationError(errors)
    return dry_run
