"""Answers pages of the history: of one book, and of the recent changes of all."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from django.http import HttpResponse
from rest_framework.exceptions import ValidationError
from rest_framework.fields import DateTimeField
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from books.api.ids import parse_book_id, require_known_book
from books.api.pagination import build_link_header
from books.history.cursors import TimeCursor, VersionCursor
from books.history.entries import CHANGE_KINDS, Entry, Filters, read_book_page, read_recent_page
from books.models import Change
from books.read_model import Representation
from library_site.api.cursors import Cursor, encode_start
from library_site.api.query import (
    DEFAULT_PAGE_SIZE,
    MAX_PAGE_SIZE,
    UnknownParameter,
    build_link,
    check_parameters,
    read_cursor,
    read_integer,
)
from library_site.api.responses import NO_STORE, json_response
from library_site.db.keyset import Key, Page, Start, lead_back

PAGE_PARAMETERS = ("limit", "cursor")


class PageQuery(NamedTuple):
    """What a query asks of a list."""

    query: Request
    start: Start
    limit: int

    def build_link(self, key: Key | None, backward: bool) -> str | None:
        return build_link(self.query, cursor=encode_start(key, backward)) if key else None


def read_book_history(representation: Representation, book_id: str, query: Request) -> HttpResponse:
    """Raises ValidationError for a malformed id, BookNotFound, and then ValidationError or UnknownParameter."""
    try:
        check_parameters(query, PAGE_PARAMETERS)
        page_query = read_page_query(query, VersionCursor, {})
    except (ValidationError, UnknownParameter) as error:
        require_known_book(parse_book_id(book_id, partial(getattr, error, "detail")))
        raise
    pk = parse_book_id(book_id)
    page = read_book_page(pk, page_query.start, page_query.limit)
    if not page.rows:
        require_known_book(pk)
    return answer_rows(page_query, page, [represent_entry(representation, entry) for entry in page.rows])


def read_changes(
    representation: Representation, filter_serializer: type[Serializer[Any]], query: Request
) -> HttpResponse:
    """Raises ValidationError, UnknownParameter."""
    names = list(filter_serializer().fields)
    check_parameters(query, [*names, *PAGE_PARAMETERS])
    texts = {name: query.query_params[name] for name in names if name in query.query_params}
    serializer = filter_serializer(data=texts)
    problems = {} if serializer.is_valid() else serializer.errors
    page_query = read_page_query(query, TimeCursor, problems)
    page = read_recent_page(build_filters(serializer.validated_data), page_query.start, page_query.limit)
    results = [{"book": entry.book_id, **represent_entry(representation, entry)} for entry in page.rows]
    return answer_rows(page_query, page, results)


def build_filters(values: Mapping[str, Any]) -> Filters:
    kind = CHANGE_KINDS[values["kind"]] if "kind" in values else None
    return Filters(**{**values, "kind": kind})


def read_page_query(query: Request, cursor_class: type[Cursor], problems: Mapping[str, Any]) -> PageQuery:
    """`problems` are what else is wrong with the query. Raises ValidationError, which names all problems."""
    limit, limit_errors = read_integer(query, "limit", DEFAULT_PAGE_SIZE, 1, MAX_PAGE_SIZE)
    start, cursor_errors = read_cursor(query, "cursor", cursor_class.decode_start, "It is no cursor of this list.")
    if all_problems := {**problems, **limit_errors, **cursor_errors}:
        raise ValidationError(all_problems)
    return PageQuery(query, start or Start(), limit)


def answer_rows(page_query: PageQuery, page: Page[Any], results: list[dict[str, Any]]) -> HttpResponse:
    """Answers the results of a page, and links to the pages beside it."""
    start = page_query.start
    _, before, behind = lead_back(page, start, descending=not start.backward)
    urls = page_query.build_link(behind, backward=False), page_query.build_link(before, backward=True)
    next_url, previous_url = urls
    headers = {**build_link_header(next_url, previous_url), **NO_STORE}
    return json_response({"results": results, "next": next_url, "previous": previous_url}, headers=headers)


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
