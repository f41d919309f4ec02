"""What most requests ask, answered from path and query alone: a book, and a part of a list by `skip` and `limit`."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from books.changes import BookNotFound
from books.compiled import encode
from books.views import BookViewSet

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


def part_of_all(view: type[BookViewSet]) -> Question:
    """Any part of the whole list, in numbers written as everybody writes them."""
    paginator: Any = view.pagination_class

    def understood(path: str, query: str) -> Asked | None:
        part = skip_and_limit(query, paginator.default_limit) if path == "/books" else None
        return partial(books, view, *part) if part and 1 <= part[1] <= paginator.max_limit else None

    return understood


def books(view: type[BookViewSet], skip: int, limit: int) -> Answer:
    return Answer(encode(view.representation.part(view.queryset, skip, limit)))


def skip_and_limit(query: str, default_limit: int) -> tuple[int, int] | None:
    """None where anything else is asked, or otherwise."""
    parameters = query.split("&") if query else []
    given = dict(parameter.partition("=")[::2] for parameter in parameters)
    known = given.keys() <= {"skip", "limit"} and len(given) == len(parameters)
    if not known or not all(map(NUMBER.fullmatch, given.values())):
        return None
    return int(given.get("skip", 0)), int(given.get("limit", default_limit))
