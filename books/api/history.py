"""Answers pages of the history: of one book, and of the recent changes of all."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import msgspec
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.fields import DateTimeField
from rest_framework.serializers import Serializer

from books.api.actions import parse_book_id, require_known_book
from books.api.pagination import answer_page
from books.history.entries import Entry, EntryKey, Filters, Page, Start, read_book_page, read_recent_page
from books.models import Change
from books.read_model import Representation
from library_site.api.cursors import Cursor
from library_site.api.query import (
    DEFAULT_PAGE_SIZE,
    MAX_PAGE_SIZE,
    FieldErrors,
    Query,
    build_link,
    check_parameters,
    read_integer,
)
from library_site.api.responses import NO_STORE
from library_site.db.integers import BIGINT_MAX
from library_site.http.fast_path import Answer

MAX_CURSOR_LENGTH = 200
PAGE_PARAMETERS = ("limit", "cursor")
CHANGE_KINDS = {kind.label: kind for kind in Change.Kind}
# One less than the largest bigint: `include_change` adds one.
CursorInteger = Annotated[int, msgspec.Meta(ge=1 - BIGINT_MAX, le=BIGINT_MAX - 1)]
CursorTime = Annotated[datetime, msgspec.Meta(tz=False)]


class VersionCursor(Cursor):
    """A position in the history of a book, and the direction to read from it."""

    backward: bool
    version: CursorInteger


class TimeCursor(Cursor):
    """A position in the changes of all books, and the direction to read from it."""

    backward: bool
    at: CursorTime
    id: CursorInteger


class PageQuery(NamedTuple):
    """What a query asks of a list, and how its cursors are made."""

    query: Query
    cursor_class: type[VersionCursor] | type[TimeCursor]
    start: Start
    limit: int

    def build_link(self, key: EntryKey | None, backward: bool) -> str | None:
        return build_link(self.query, cursor=self.cursor_class(backward, *key).encode()) if key else None


def read_book_history(representation: Representation, book_id: str, query: Query) -> Answer:
    """Raises BookNotFound, ValidationError, UnknownParameter."""
    check_parameters(query, PAGE_PARAMETERS)
    page_query = read_page_query(query, VersionCursor, {})
    pk = parse_book_id(book_id)
    page = read_book_page(pk, page_query.start, page_query.limit)
    if not page.entries:
        require_known_book(pk)
    keys = [(entry.version,) for entry in page.entries]
    return answer_entries(page_query, page, keys, [represent_entry(representation, entry) for entry in page.entries])


def read_changes(representation: Representation, filter_serializer: type[Serializer[Any]], query: Query) -> Answer:
    """Raises ValidationError, UnknownParameter."""
    names = list(filter_serializer().fields)
    check_parameters(query, [*names, *PAGE_PARAMETERS])
    texts = {name: query.query_params[name] for name in names if name in query.query_params}
    serializer = filter_serializer(data=texts)
    problems = {} if serializer.is_valid() else serializer.errors
    page_query = read_page_query(query, TimeCursor, problems)
    page = read_recent_page(build_filters(serializer.validated_data), page_query.start, page_query.limit)
    keys = [(entry.at, entry.id) for entry in page.entries]
    results = [{"book": entry.book_id, **represent_entry(representation, entry)} for entry in page.entries]
    return answer_entries(page_query, page, keys, results)


def build_filters(values: Mapping[str, Any]) -> Filters:
    kind = CHANGE_KINDS[values["kind"]] if "kind" in values else None
    return Filters(**{**values, "kind": kind})


def read_page_query(
    query: Query, cursor_class: type[VersionCursor] | type[TimeCursor], problems: Mapping[str, Any]
) -> PageQuery:
    """`problems` are what else is wrong with the query. Raises ValidationError, which names all problems."""
    limit, limit_errors = read_integer(query, "limit", DEFAULT_PAGE_SIZE, 1, MAX_PAGE_SIZE)
    start, cursor_errors = read_start(query, cursor_class)
    if all_problems := {**problems, **limit_errors, **cursor_errors}:
        raise ValidationError(all_problems)
    return PageQuery(query, cursor_class, start, limit)


def read_start(query: Query, cursor_class: type[VersionCursor] | type[TimeCursor]) -> tuple[Start, FieldErrors]:
    if "cursor" not in query.query_params:
        return Start(), {}
    try:
        cursor = cursor_class.decode(str(query.query_params["cursor"]), MAX_CURSOR_LENGTH)
    except ValueError:
        return Start(), {"cursor": [ErrorDetail("It is no cursor of this list.", code="cursor")]}
    backward, *key = msgspec.structs.astuple(cursor)
    return Start(tuple(key), backward), {}


def answer_entries(page_query: PageQuery, page: Page, keys: list[EntryKey], results: list[dict[str, Any]]) -> Answer:
    """Answers the entries, whose keys these are, and links to the pages beside them."""
    start = page_query.start
    older, newer = (keys[-1], keys[0]) if keys else [include_change(start)] * 2
    older_end = older if start.backward else page.end
    newer_end = page.end if start.backward else start.key and newer
    urls = page_query.build_link(older_end, backward=False), page_query.build_link(newer_end, backward=True)
    answer = answer_page(results, *urls)
    return answer._replace(headers={**answer.headers, **NO_STORE})


def include_change(start: Start) -> EntryKey:
    """Returns a key so that a page in the other direction begins with the change of the cursor."""
    *others, last = start.key or (0,)
    return (*others, last + (1 if start.backward else -1))


def represent_entry(representation: Representation, entry: Entry) -> dict[str, Any]:
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
        "before": describe_members(representation, entry.before),
        "after": entry.after if entry.kind is Change.Kind.MERGED else describe_members(representation, entry.after),
    }


def describe_members(representation: Representation, members: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns members as the version names and shows them, in its order."""
    if members is None:
        return None
    fields = [(name, str(field.source), field) for name, field in representation.fields.items()]
    return {
        name: format_time(datetime.fromisoformat(members[source]))
        if isinstance(field, DateTimeField)
        else members[source]
        for name, source, field in fields
        if source in members
    }


def format_time(time: datetime) -> str:
    return f"{time.isoformat(timespec='microseconds')}Z"
