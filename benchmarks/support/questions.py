"""The questions (kinds of requests) that are sent to a library of any size, and the time of their responses."""

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection
from itertools import count, cycle, islice
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

WARM_UP_REQUESTS, MIN_REQUESTS = 2, 5
# A cursor reaches a page after so many rows in acceptable time.
MAX_SKIPPED = 100_000
# The names of the credentials that some requests need.
API_KEY, SESSION = "api-key", "session"
Credentials = Mapping[str, Mapping[str, str]]
"""Headers by the names of credentials."""
# The seed data has few matches (Jane Austen), many (three titles of four, a genre of ten) and none.
RARE_WORD, COMMON_WORD, ABSENT_WORD = "austen", "the", "zzqqx"
FILTERS = {
    "rare author": f"author={RARE_WORD}",
    "common title": f"title={COMMON_WORD}",
    "absent author": f"author={ABSENT_WORD}",
    "two letters, common": "author=an",
    "two letters, absent": "author=qj",
    "rare + common": f"author={RARE_WORD}&genre=novel",
    "common + common": f"title={COMMON_WORD}&genre=novel",
    "common, by title": "genre=novel&sort=title",
    "rare, newest first": f"author={RARE_WORD}&sort=-created_at",
    "q, rare + common": f"q={RARE_WORD}+{COMMON_WORD}",
    "q, common + common": f"q=novel+{COMMON_WORD}",
    "count of a common genre": "genre=novel&count=true&limit=1",
}
# `history_filling` writes a book with many changes, an actor with few and one with most, and a rare channel.
BUSY_BOOK, BUSY_BOOK_CHANGES = 1, 1_000
RARE_ACTOR, RARE_CHANNEL = "the archivist", "import"
COMMON_ACTOR, COMMON_CHANNEL = "the librarian", "admin"
HISTORY = {
    "history of a book": f"books/{BUSY_BOOK}/history",
    "changes": "changes",
    "changes of a rare actor": f"changes?actor={quote(RARE_ACTOR)}",
    "changes of a common actor": f"changes?actor={quote(COMMON_ACTOR)}",
    "changes of a kind and a rare actor": f"changes?kind=created&actor={quote(RARE_ACTOR)}",
    "changes of a rare channel": f"changes?channel={RARE_CHANNEL}",
}
ADMIN_PAGES = {
    "admin: first page": "/admin/",
    "admin: books": "/admin/books/book/",
    "admin: history of a book": f"/admin/books/book/{BUSY_BOOK}/history/",
}


class BadResponse(Exception):
    """A request failed, so its speed means nothing."""


class Request(NamedTuple):
    """`credential` is the name of one of the client's credentials."""

    path: str
    method: str = "GET"
    book: dict[str, Any] | None = None
    credential: str = ""


class LibraryClient:
    """A client of a library with so many books, and its last response."""

    def __init__(self, port: int, books: int, credentials: Credentials) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=120)
        self.credentials: Credentials = {"": {}, **credentials}
        self.books = books
        self.answer = b""

    def send(self, request: Request) -> float:
        """Returns the milliseconds until the response. Raises BadAnswer."""
        body = json.dumps(request.book) if request.book else None
        headers = {**self.credentials[request.credential], **({"Content-Type": "application/json"} if body else {})}
        start = time.perf_counter()
        self.connection.request(request.method, request.path, body, headers)
        response = self.connection.getresponse()
        self.answer = response.read()
        seconds = time.perf_counter() - start
        if response.status not in (200, 201):
            raise BadResponse(f"{request.path}: {response.status} {self.answer[:500]!r}")
        return seconds * 1000


Question = Callable[[LibraryClient], Iterator[Request]]


def time_question(client: LibraryClient, question: Question, seconds: float) -> float:
    """Returns the median of the milliseconds of answers."""
    requests = question(client)
    for request in islice(requests, WARM_UP_REQUESTS):
        client.send(request)
    deadline = time.monotonic() + seconds
    times: list[float] = []
    for request in requests:
        times.append(client.send(request))
        if time.monotonic() > deadline and len(times) >= MIN_REQUESTS:
            break
    return statistics.median(times)


def repeat_path(path: str, credential: str = "") -> Question:
    return lambda _: cycle([Request(path, credential=credential)])


def iter_book_paths(client: LibraryClient) -> Iterator[str]:
    # 7,919 is prime: the numbers reach every book of a library, in large steps.
    return (f"/api/books/{number * 7_919 % client.books + 1}" for number in count())


def iter_book_reads(client: LibraryClient) -> Iterator[Request]:
    return map(Request, iter_book_paths(client))


def iter_deep_skips(client: LibraryClient) -> Iterator[Request]:
    return cycle([Request(f"/api/books?skip={client.books * 9 // 10}")])


def iter_deep_pages(client: LibraryClient) -> Iterator[Request]:
    """The pages by title after most of the books."""
    query = "sort=title&limit=500"
    for _ in range(min(client.books * 4 // 5, MAX_SKIPPED) // 500):
        client.send(Request(f"/api/v2/books?{query}"))
        # The rest of the address is the public one, which does not exist here.
        query = urlsplit(json.loads(client.answer)["next"]).query
    return cycle([Request(f"/api/v2/books?{query.replace('limit=500', 'limit=100')}")])


def iter_title_changes(client: LibraryClient) -> Iterator[Request]:
    for number, path in enumerate(iter_book_paths(client)):
        yield Request(path, "PUT", {"title": f"The Lighthouse of Perth, edition {number}"})


def iter_book_creations(client: LibraryClient) -> Iterator[Request]:
    for number in count():
        book = {"title": "The Lighthouse of Perth", "author": "Mary Johnson", "year": 1990, "genre": "Novel"}
        yield Request("/api/books", "POST", {**book, "isbn": f"new {number}"})


QUESTIONS: dict[str, Question] = {
    "get one": iter_book_reads,
    "first page": repeat_path("/api/books"),
    "first page, version 2": repeat_path("/api/v2/books"),
    "keyset page": iter_deep_pages,
    "deep skip": iter_deep_skips,
    **{name: repeat_path(f"/api/v2/books?{query}") for name, query in FILTERS.items()},
    **{name: repeat_path(f"/api/v2/{query}", API_KEY) for name, query in HISTORY.items()},
    **{name: repeat_path(path, SESSION) for name, path in ADMIN_PAGES.items()},
    "POST": iter_book_creations,
    "PUT": iter_title_changes,
}
# Questions whose time should not depend on the number of books.
CONSTANT_TIME_QUESTIONS = {
    "get one",
    "first page",
    "first page, version 2",
    "keyset page",
    "rare author",
    *HISTORY,
    *ADMIN_PAGES,
}
