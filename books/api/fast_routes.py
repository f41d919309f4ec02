"""Routes of the fast path for the most frequent requests: to read one book, and to read a page of the list."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote_plus

from django.core.exceptions import ValidationError
from django.db import connection

from books.api.filters import ContainsFilter, clean_values
from books.api.views import BookViewSet
from books.changes import BookNotFound
from library_site.api.responses import encode_json
from library_site.http.fast_path import Answer, FastRoute, PendingRead
from oauth.permissions import is_open_to_anonymous

BOOK_PATH = re.compile(r"/books/(0|[1-9][0-9]{0,17})")
NUMBER_PATTERN = re.compile(r"0|[1-9][0-9]{0,8}")


def make_book_route(view: type[BookViewSet]) -> FastRoute:
    """Makes the route that reads one book; the request has no query."""

    def route(path: str, query: str) -> PendingRead | None:
        match = BOOK_PATH.fullmatch(path)
        if not match or query or not is_open_to_anonymous("read"):
            return None
        return partial(read_book, view, int(match[1]))

    return route


def read_book(view: type[BookViewSet], pk: int) -> Answer | None:
    """Returns None if the book does not exist."""
    try:
        book, etag = view.read_book(pk, view.representation)
    except BookNotFound:
        return None
    return Answer(encode_json(book), etag)


def make_list_route(view: Any) -> FastRoute:
    """Makes the route that reads a page of the list, with skip and limit as digits, and with text filters."""
    paginator, filters = view.pagination_class, view.filterset_class.base_filters
    text_filters = {name: filter for name, filter in filters.items() if isinstance(filter, ContainsFilter)}

    def route(path: str, query: str) -> PendingRead | None:
        parameters = parse_query(query) if path == "/books" and is_open_to_anonymous("read") else None
        if parameters is None:
            return None
        skip, limit = parameters.pop("skip", "0"), parameters.pop("limit", str(paginator.default_limit))
        if (
            not NUMBER_PATTERN.fullmatch(skip)
            or not NUMBER_PATTERN.fullmatch(limit)
            or not 1 <= int(limit) <= paginator.max_limit
        ):
            return None
        conditions = compile_filters(text_filters, parameters)
        return partial(list_books, view, conditions, int(skip), int(limit)) if conditions is not None else None

    return route


def list_books(view: type[BookViewSet], conditions: Sequence[tuple[str, str]], skip: int, limit: int) -> Answer:
    return Answer(encode_json(view.representation.fetch_matching(view.queryset, conditions, skip, limit)))


def parse_query(query: str) -> dict[str, str] | None:
    """Returns the parameters by name, or None if a name occurs twice or the query is not ASCII."""
    pairs = [part.partition("=")[::2] for part in query.split("&")] if query else []
    parameters = {name: unquote_plus(value) for name, value in pairs}
    return parameters if len(parameters) == len(pairs) and query.isascii() else None


def compile_filters(
    text_filters: Mapping[str, ContainsFilter], parameters: Mapping[str, str]
) -> list[tuple[str, str]] | None:
    """Returns the conditions as SQL with their parameters.

    Returns None if a parameter is no text filter or its value is refused, and on SQLite, where an index is read first.
    """
    if not parameters:
        return []
    if connection.vendor != "postgresql" or not parameters.keys() <= text_filters.keys():
        return None
    try:
        values = clean_values(text_filters, parameters)
    except ValidationError:
        return None
    return [text_filters[name].to_sql(value) for name, value in values.items() if value]
