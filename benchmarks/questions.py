"""The questions (kinds of requests) that are sent to a library of any size, and the time of their answers."""

import json
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from itertools import count, cycle, islice
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from stdnum import ean

from benchmarks.support.load import get_cpu_seconds

MIN_REQUESTS = 5
WARM_UP_REQUESTS = 2
# A cursor reaches a page behind so many rows in acceptable time.
MAX_SKIPPED = 100_000
# The names of the credentials that some requests need.
API_KEY, SESSION = "api-key", "session"
Credentials = Mapping[str, Mapping[str, str]]
"""Headers by the names of credentials."""
SORTS = [sign + name for name in ("id", "title", "author", "year", "created_at") for sign in ("", "-")]
# The seed data has few matches (Jane Austen), many (three titles of four, a genre of ten) and none.
RARE_WORD, COMMON_WORD, ABSENT_WORD, SHORT_WORD, SHORT_ABSENT_WORD = "austen", "the", "zzqqx", "an", "qj"
ONE_ABSENT_PATTERN, TWO_ABSENT_PATTERNS = "two letters, absent", "two letters twice, absent"
FILTERS = {
    "rare author": f"author={RARE_WORD}",
    "rare title": "title=persuasion",
    "rare genre": "genre=dystopia",
    "common author": "author=mar",
    "common title": f"title={COMMON_WORD}",
    "common genre": "genre=novel",
    "absent author": f"author={ABSENT_WORD}",
    "two letters, common": f"author={SHORT_WORD}",
    ONE_ABSENT_PATTERN: f"author={SHORT_ABSENT_WORD}",
    TWO_ABSENT_PATTERNS: f"author={SHORT_ABSENT_WORD}&genre={SHORT_ABSENT_WORD}",
    "rare + common": f"author={RARE_WORD}&genre=novel",
    "common + common": f"title={COMMON_WORD}&genre=novel",
    "common, by title": "genre=novel&sort=title",
    "rare, newest first": f"author={RARE_WORD}&sort=-created_at",
    "q, rare": f"q={RARE_WORD}",
    "q, common": "q=novel",
    "q, absent": f"q={ABSENT_WORD}",
    "q, rare + common": f"q={RARE_WORD}+{COMMON_WORD}",
    "q, common + common": f"q=novel+{COMMON_WORD}",
    "count": "count=true&limit=1",
    "count of a common genre": "genre=novel&count=true&limit=1",
}
# `benchmarks.support.history_filling` writes a book with many changes, an actor with few and one with most, and a rare
# channel.
BUSY_BOOK, BUSY_BOOK_CHANGES = 1, 1_000
RARE_ACTOR, RARE_CHANNEL = "the archivist", "import"
COMMON_ACTOR, COMMON_CHANNEL = "the librarian", "admin"
NOW = datetime.now(UTC)
A_YEAR_AGO, THIRTEEN_MONTHS_AGO = (f"{NOW - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}" for days in (365, 395))
HISTORY_QUERIES = {
    "history of a book": f"books/{BUSY_BOOK}/history",
    "changes": "changes",
    "changes since a year ago": f"changes?since={A_YEAR_AGO}",
    "changes until a year ago": f"changes?until={A_YEAR_AGO}",
    "changes of a month": f"changes?since={THIRTEEN_MONTHS_AGO}&until={A_YEAR_AGO}",
    "changes of a rare actor": f"changes?actor={quote(RARE_ACTOR)}",
    "changes of a common actor": f"changes?actor={quote(COMMON_ACTOR)}",
    "changes of a common actor, until a year ago": f"changes?actor={quote(COMMON_ACTOR)}&until={A_YEAR_AGO}",
    "changes of a kind": "changes?kind=deleted",
    "changes of a kind and a rare actor": f"changes?kind=created&actor={quote(RARE_ACTOR)}",
    "changes of a common channel": f"changes?channel={COMMON_CHANNEL}",
    "changes of a rare channel": f"changes?channel={RARE_CHANNEL}",
}
# The address of a list, its query, and how far its pages are skipped: a share of the number of books, at most so many.
DEEP_HISTORY_PAGES = {
    "history of a book, far back": (f"books/{BUSY_BOOK}/history", "", 0.8, BUSY_BOOK_CHANGES * 4 // 5),
    "changes, far back": ("changes", "", 0.8, MAX_SKIPPED),
    "changes of a common actor, far back": ("changes", f"actor={quote(COMMON_ACTOR)}", 0.4, MAX_SKIPPED),
    "changes of a kind, far back": ("changes", "kind=changed", 0.4, MAX_SKIPPED),
}
ADMIN_PAGES = {
    "admin: books": "/admin/books/book/",
    "admin: history of a book": f"/admin/books/book/{BUSY_BOOK}/history/",
}


class BadAnswer(Exception):
    """A request failed, so its speed means nothing."""


class Timing(NamedTuple):
    """`cpu_us` is the CPU time of a request, of the server and PostgreSQL together."""

    median_ms: float
    p99_ms: float
    cpu_us: float


class Effort(NamedTuple):
    """How often a question is sent, and the limit in seconds."""

    requests: int
    seconds: float


class Request(NamedTuple):
    """`credential` is the name of one of the client's credentials."""

    path: str
    method: str = "GET"
    book: dict[str, Any] | None = None
    credential: str = ""


class LibraryClient:
    """A client of a library, and its last answer. `pids` are the roots of the library's process trees.

    The history needs an API key, and the admin a session.
    """

    def __init__(self, port: int, books: int, pids: Collection[int], credentials: Credentials | None = None) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=120)
        self.credentials: Credentials = {"": {}, **(credentials or {})}
        self.books = books
        self.pids = pids
        self.answer = b""

    def send(self, request: Request) -> float:
        """Returns the milliseconds until the answer. Raises BadAnswer."""
        body = json.dumps(request.book) if request.book else None
        start = time.perf_counter()
        headers = {**self.credentials[request.credential], **({"Content-Type": "application/json"} if body else {})}
        self.connection.request(request.method, request.path, body, headers)
        response = self.connection.getresponse()
        self.answer = response.read()
        seconds = time.perf_counter() - start
        if response.status not in (200, 201):
            raise BadAnswer(f"{request.path}: {response.status} {self.answer[:500]!r}")
        return seconds * 1000


Question = Callable[[LibraryClient], Iterator[Request]]


def time_question(client: LibraryClient, question: Question, effort: Effort) -> Timing:
    requests = question(client)
    for request in islice(requests, WARM_UP_REQUESTS):
        client.send(request)
    cpu_before, deadline = get_cpu_seconds(*client.pids), time.monotonic() + effort.seconds
    times: list[float] = []
    for request in islice(requests, effort.requests):
        times.append(client.send(request))
        if time.monotonic() > deadline and len(times) >= MIN_REQUESTS:
            break
    cpu_us = (get_cpu_seconds(*client.pids) - cpu_before) / len(times) * 1e6
    return Timing(statistics.median(times), sorted(times)[int(len(times) * 0.99)], cpu_us)


def repeat_path(path: str, credential: str = "") -> Question:
    return lambda _: cycle([Request(path, credential=credential)])


def iter_book_reads(client: LibraryClient) -> Iterator[Request]:
    return (Request(path) for path in iter_book_paths(client))


def iter_book_paths(client: LibraryClient) -> Iterator[str]:
    # 7,919 is prime: the numbers reach every book of a library, in large steps.
    return (f"/api/books/{number * 7_919 % client.books + 1}" for number in count())


def iter_deep_skips(client: LibraryClient) -> Iterator[Request]:
    return repeat_path(f"/api/books?skip={client.books * 9 // 10}")(client)


def follow_pages(path: str, query: str, share: float, max_skipped: int, credential: str = "") -> Question:
    """The pages of a list beyond the first rows: this share of the number of books, but at most `max_skipped`."""

    def iter_pages(client: LibraryClient) -> Iterator[Request]:
        next_query = f"{query}&limit=500"
        for _ in range(min(int(client.books * share), max_skipped) // 500):
            client.send(Request(f"/api/v2/{path}?{next_query}", credential=credential))
            next_query = get_next_query(client)
        first_query = next_query.replace("limit=500", "limit=100")
        while True:
            next_query = first_query
            while next_query:
                yield Request(f"/api/v2/{path}?{next_query}", credential=credential)
                next_query = get_next_query(client)

    return iter_pages


def get_next_query(client: LibraryClient) -> str:
    """The query of the next page. Its address is not used: it is the public one, which does not exist here."""
    return urlsplit(json.loads(client.answer)["next"] or "").query


def iter_book_creations(client: LibraryClient, start: int = 0) -> Iterator[Request]:
    for number in count(start):
        yield Request("/api/books", "POST", build_book(number))


def build_book(number: int) -> dict[str, Any]:
    return {
        "title": f"The Lighthouse of Perth, volume {number}",
        "author": "Mary Johnson",
        "year": 1990,
        "isbn": make_isbn(number),
        "genre": "Novel",
    }


def make_isbn(number: int) -> str:
    """An ISBN with a valid check digit that no book of the seed data has."""
    digits = f"978{number:09d}"
    return digits + ean.calc_check_digit(digits)


def iter_title_changes(client: LibraryClient, start: int = 0) -> Iterator[Request]:
    for number, path in enumerate(iter_book_paths(client), start):
        yield Request(path, "PUT", {"title": f"The Lighthouse of Perth, edition {number}"})


def iter_book_deletions(client: LibraryClient) -> Iterator[Request]:
    return (Request(path, "DELETE") for path in iter_book_paths(client))


QUESTIONS: dict[str, Question] = {
    "get one": iter_book_reads,
    "first page": repeat_path("/api/books"),
    "first page, version 2": repeat_path("/api/v2/books"),
    "keyset page": follow_pages("books", "sort=title", 0.8, MAX_SKIPPED),
    "deep skip": iter_deep_skips,
    **{f"sort={sort}": repeat_path(f"/api/v2/books?sort={sort}") for sort in SORTS},
    **{name: repeat_path(f"/api/v2/books?{query}") for name, query in FILTERS.items()},
    **{name: repeat_path(f"/api/v2/{query}", API_KEY) for name, query in HISTORY_QUERIES.items()},
    **{name: follow_pages(*pages, API_KEY) for name, pages in DEEP_HISTORY_PAGES.items()},
    **{name: repeat_path(path, SESSION) for name, path in ADMIN_PAGES.items()},
    "POST": iter_book_creations,
    "PUT": iter_title_changes,
    # Last: it deletes books that the questions above read.
    "DELETE": iter_book_deletions,
}
# Questions whose time should not depend on the number of books.
CONSTANT_TIME_QUESTIONS = [
    "get one",
    "first page",
    "first page, version 2",
    "keyset page",
    "rare author",
    *HISTORY_QUERIES,
    *DEEP_HISTORY_PAGES,
    *ADMIN_PAGES,
]
