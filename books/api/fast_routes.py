"""The most frequent reads, answered from path and query alone: one book, and a page of the list."""

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
    """GET of one book, without a query."""

    def route(path: str, query: str) -> PendingRead | None:
        matched = BOOK_PATH.fullmatch(path)
        if not matched or query or not is_open_to_anonymous("read"):
            return None
        return partial(read_book, view, int(matched[1]))

    return route


def read_book(view: type[BookViewSet], pk: int) -> Answer | None:
    """None where there is no such book."""
    try:
        shown, etag = view.read_book(pk, view.representation)
    except BookNotFound:
        return None
    return Answer(encode_json(shown), etag)


def make_list_route(view: Any) -> FastRoute:
    """GET of a page of the list: skip and limit in plain digits, and text filters."""
    paginator, filters = view.pagination_class, view.filterset_class.base_filters
    texts = {name: one for name, one in filters.items() if isinstance(one, ContainsFilter)}

    def route(path: str, query: str) -> PendingRead | None:
        given = parse_query(query) if path == "/books" and is_open_to_anonymous("read") else None
        if given is None:
            return None
        skip, limit = given.pop("skip", "0"), given.pop("limit", str(paginator.default_limit))
        if (
            not NUMBER_PATTERN.fullmatch(skip)
            or not NUMBER_PATTERN.fullmatch(limit)
            or not 1 <= int(limit) <= paginator.max_limit
        ):
            return None
        found = compile_filters(texts, given)
        return partial(list_books, view, found, int(skip), int(limit)) if found is not None else None

    return route


def list_books(view: type[BookViewSet], found: Sequence[tuple[str, str]], skip: int, limit: int) -> Answer:
    return Answer(encode_json(view.representation.fetch_matching(view.queryset, found, skip, limit)))


def parse_query(query: str) -> dict[str, str] | None:
    """By name; None where one is there twice, or it is not written in plain ASCII."""
    pairs = [part.partition("=")[::2] for part in query.split("&")] if query else []
    given = {name: unquote_plus(value) for name, value in pairs}
    return given if len(given) == len(pairs) and query.isascii() else None


def compile_filters(texts: Mapping[str, ContainsFilter], given: Mapping[str, str]) -> list[tuple[str, str]] | None:
    """None where one is no filter for texts, or its text is refused, or an index is to be asked first (SQLite)."""
    if not given:
        return []
    if connection.vendor != "postgresql" or not given.keys() <= texts.keys():
        return None
    try:
        values = clean_values(texts, given)
    except ValidationError:
        return None
    return [texts[name].to_sql(value) for name, value in values.items() if value]
