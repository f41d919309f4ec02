"""Returns pages of the history: of one book, and of the recent changes of all books."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.fields import DateTimeField
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from books.api.ids import parse_book_id, require_known_book
from books.history.change_pages import CHANGE_KINDS, Entry, Filters, read_book_page, read_recent_page
from books.history.cursors import TimeCursor, VersionCursor
from books.models import Change
from books.read_model import BookEncoder
from library_site.api.pagination import NewestFirstPagination
from library_site.api.query import UnknownParameter, check_parameters


class VersionPagination(NewestFirstPagination):
    cursor_class = VersionCursor


class TimePagination(NewestFirstPagination):
    cursor_class = TimeCursor


def read_book_history(representation: BookEncoder, book_id: str, query: Request) -> Response:
    """Raises ValidationError for a malformed id, BookNotFound, and then ValidationError or UnknownParameter."""
    paginator = VersionPagination()
    try:
        check_parameters(query, paginator.parameters)
        paginator.check(query)
    except (ValidationError, UnknownParameter) as error:
        require_known_book(parse_book_id(book_id, partial(getattr, error, "detail")))
        raise
    pk = parse_book_id(book_id)
    entries = paginator.paginate(partial(read_book_page, pk))
    if not entries:
        require_known_book(pk)
    return paginator.get_paginated_response([represent_entry(representation, entry) for entry in entries])


def read_changes(representation: BookEncoder, filter_serializer: type[Serializer[Any]], query: Request) -> Response:
    """Raises ValidationError, UnknownParameter."""
    paginator, names = TimePagination(), list(filter_serializer().fields)
    check_parameters(query, [*names, *paginator.parameters])
    texts = {name: query.query_params[name] for name in names if name in query.query_params}
    serializer = filter_serializer(data=texts)
    paginator.check(query, {} if serializer.is_valid() else serializer.errors)
    entries = paginator.paginate(partial(read_recent_page, build_filters(serializer.validated_data)))
    results = [{"book": entry.book_id, **represent_entry(representation, entry)} for entry in entries]
    return paginator.get_paginated_response(results)


def build_filters(values: Mapping[str, Any]) -> Filters:
    kind = CHANGE_KINDS[values["kind"]] if "kind" in values else None
    return Filters(**{**values, "kind": kind})


def represent_entry(representation: BookEncoder, entry: Entry) -> dict[str, Any]:
    return {
        "version": entry.version,
        "kind": entry.kind.label,
        "at": format_time(entry.at),
        "channel": entry.actor.channel,
        "actor": {
            "user": entry.actor.user,
            "app": entry.actor.app,
            "api_key": entry.actor.api_key,
            "source": entry.actor.source,
        },
        "operation": entry.operation_id,
        "before": describe_fields(representation, entry.before),
        "after": entry.after if entry.kind is Change.Kind.MERGED else describe_fields(representation, entry.after),
    }


def describe_fields(representation: BookEncoder, stored: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns the fields as this version names and formats them, in its order."""
    if stored is None:
        return None
    fields = [(name, str(field.source), field) for name, field in representation.fields.items()]
    return {
        name: format_time(datetime.fromisoformat(stored[source]))
        if isinstance(field, DateTimeField)
        else stored[source]
        for name, source, field in fields
        if source in stored
    }


def format_time(time: datetime) -> str:
    return f"{time.isoformat(timespec='microseconds')}Z"
