"""The history in version 2: of one book, and the recent changes of all books."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from rest_framework.exceptions import ValidationError
from rest_framework.fields import DateTimeField
from rest_framework.request import Request
from rest_framework.response import Response

from books.api.ids import parse_book_id, require_known_book
from books.api.schema import BOOK_ID_PARAMETER
from books.api.v2.documents.history import document_history
from books.api.v2.serializers import ChangeFilterSerializer
from books.api.views import BookViewSet
from books.history.change_pages import CHANGE_KINDS, Entry, Filters, read_book_page, read_recent_page
from books.history.cursors import TimeCursor, VersionCursor
from books.models import Change
from books.read_model import BookEncoder
from library_site.api.pagination import NewestFirstPagination
from library_site.api.query import UnknownParameter, check_parameters
from library_site.api.viewsets import APIViewSet
from oauth.permissions import HasViewScope


class VersionPagination(NewestFirstPagination):
    cursor_class = VersionCursor


class TimePagination(NewestFirstPagination):
    cursor_class = TimeCursor


@document_history
class HistoryViewSet(APIViewSet):
    """Names are personal data: whatever LIBRARY_ACCESS says, the history is for credentials that may change books."""

    permission_classes = [HasViewScope]
    scope = "write"
    noun, tag = "change", "History"
    path_parameters = [BOOK_ID_PARAMETER]
    pagination_class = TimePagination
    queryset = Change.objects.order_by("at", "pk")
    # The viewset of books in this version. Changes show its fields.
    books: ClassVar[type[BookViewSet]] = BookViewSet

    def list(self, request: Request) -> Response:
        paginator, names = TimePagination(), list(ChangeFilterSerializer().fields)
        check_parameters(request, [*names, *paginator.parameters])
        texts = {name: request.query_params[name] for name in names if name in request.query_params}
        serializer = ChangeFilterSerializer(data=texts)
        paginator.check(request, {} if serializer.is_valid() else serializer.errors)
        values = serializer.validated_data
        filters = Filters(**{**values, "kind": CHANGE_KINDS[values["kind"]] if "kind" in values else None})
        entries, encoder = paginator.paginate(partial(read_recent_page, filters)), self.books.get_representation()
        results = [{"book": entry.book_id, **represent_entry(encoder, entry)} for entry in entries]
        return paginator.get_paginated_response(results)

    def retrieve(self, request: Request, book_id: str) -> Response:
        """Raises ValidationError for a malformed id, BookNotFound, and then ValidationError or UnknownParameter."""
        paginator = VersionPagination()
        try:
            check_parameters(request, paginator.parameters)
            paginator.check(request)
        except (ValidationError, UnknownParameter) as error:
            require_known_book(parse_book_id(book_id, partial(getattr, error, "detail")))
            raise
        pk = parse_book_id(book_id)
        entries, encoder = paginator.paginate(partial(read_book_page, pk)), self.books.get_representation()
        if not entries:
            require_known_book(pk)
        return paginator.get_paginated_response([represent_entry(encoder, entry) for entry in entries])


def represent_entry(encoder: BookEncoder, entry: Entry) -> dict[str, Any]:
    channel, *names = entry.actor
    return {
        "version": entry.version,
        "kind": entry.kind.label,
        "at": format_time(entry.at),
        "channel": channel,
        "actor": dict(zip(("user", "app", "api_key", "source"), names, strict=True)),
        "operation": entry.operation_id,
        "before": describe_fields(encoder, entry.before),
        "after": entry.after if entry.kind is Change.Kind.MERGED else describe_fields(encoder, entry.after),
    }


def describe_fields(encoder: BookEncoder, stored: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns the fields as this version names and formats them, in its order."""
    if stored is None:
        return None
    fields = [(name, str(field.source), field) for name, field in encoder.fields.items()]
    return {
        name: format_time(datetime.fromisoformat(stored[source]))
        if isinstance(field, DateTimeField)
        else stored[source]
        for name, source, field in fields
        if source in stored
    }


def format_time(time: datetime) -> str:
    return f"{time.isoformat(timespec='microseconds')}Z"
