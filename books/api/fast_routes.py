"""What most requests ask, answered from path and query alone: a book, and a part of a list."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from django.core.exceptions import ValidationError
from django.db import connection

from books.api.filters import Partial, cleaned
from books.api.views import BookViewSet
from books.changes import BookNotFound
from books.read_model import encode

BOOK = re.compile(r"/books/(0|[1-9][0-9]{0,17})")
NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")


class Answer(NamedTuple):
    """A body of JSON, and the tag of what it shows, if it has one."""

    body: bytes
    etag: str = ""


# None leaves the answer to the view.
Asked = Callable[[], Answer | None]
# From the path below a version's home and the query; None where they ask something else.
Question = Callable[[str, str], Asked | None]


def one_book(view: type[BookViewSet]) -> Question:
    """With nothing else asked."""

    def understood(path: str, query: str) -> Asked | None:
        matched = BOOK.fullmatch(path)
        return partial(book, view, int(matched[1])) if matched and not query else None

    return understood


def book(view: type[BookViewSet], pk: int) -> Answer | None:
    """None where it is not there."""
    try:
        shown, etag = view.found(pk, view.representation)
    except BookNotFound:
        return None
    return Answer(encode(shown), etag)


def part_of_all(view: Any) -> Question:
    """Any part of the list, in numbers written as everybody writes them, and of books with such and such texts."""
    paginator, filters = view.pagination_class, view.filterset_class.base_filters
    texts = {name: one for name, one in filters.items() if isinstance(one, Partial)}

    def understood(path: str, query: str) -> Asked | None:
        given = parameters(query) if path == "/books" else None
        if given is None:
            return None
        skip, limit = given.pop("skip", "0"), given.pop("limit", str(paginator.default_limit))
        if not NUMBER.fullmatch(skip) or not NUMBER.fullmatch(limit) or not 1 <= int(limit) <= paginator.max_limit:
            return None
        found = conditions(texts, given)
        return partial(books, view, found, int(skip), int(limit)) if found is not None else None

    return understood


def books(view: type[BookViewSet], found: Sequence[tuple[str, str]], skip: int, limit: int) -> Answer:
    return Answer(encode(view.representation.matching(view.queryset, found, skip, limit)))


def parameters(query: str) -> dict[str, str] | None:
    """By name; None where one is there twice, or it is not written in plain ASCII."""
    pairs = [part.partition("=")[::2] for part in query.split("&")] if query else []
    given = {name: unquote_plus(value) for name, value in pairs}
    return given if len(given) == len(pairs) and query.isascii() else None


def conditions(texts: Mapping[str, Partial], given: Mapping[str, str]) -> list[tuple[str, str]] | None:
    """None where one is no filter for texts, or its text is refused, or an index is to be asked first (SQLite)."""
    if not given:
        return []
    if connection.vendor != "postgresql" or not given.keys() <= texts.keys():
        return None
    try:
        values = cleaned(texts, given)
    except ValidationError:
        return None
    return [texts[name].compiled(value) for name, value in values.items() if value]
