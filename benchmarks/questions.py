"""What a library of any size is asked, one question after the other, and how long each answer takes."""

import json
import statistics
import time
from collections.abc import Callable, Collection, Iterator
from http.client import HTTPConnection
from itertools import count, cycle, islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from stdnum import ean

from benchmarks.load import cpu_seconds

LEAST_REQUESTS = 5
WARM_UP = 2
SORTS = [sign + name for name in ("id", "title", "author", "year", "created_at") for sign in ("", "-")]
# Of these the seeds hold few (Jane Austen), many (three titles of four, a genre of ten) and none.
RARE, COMMON, ABSENT, SHORT, SHORT_ABSENT = "austen", "the", "zzqqx", "an", "qj"
SHORT_ABSENT_ONCE, SHORT_ABSENT_TWICE = "two letters, absent", "two letters twice, absent"
FILTERS = {
    "rare author": f"author={RARE}",
    "rare title": "title=persuasion",
    "rare genre": "genre=dystopia",
    "common author": "author=mar",
    "common title": f"title={COMMON}",
    "common genre": "genre=novel",
    "absent author": f"author={ABSENT}",
    "two letters, common": f"author={SHORT}",
    SHORT_ABSENT_ONCE: f"author={SHORT_ABSENT}",
    SHORT_ABSENT_TWICE: f"author={SHORT_ABSENT}&genre={SHORT_ABSENT}",
    "rare + common": f"author={RARE}&genre=novel",
    "common + common": f"title={COMMON}&genre=novel",
    "common, by title": "genre=novel&sort=title",
    "rare, newest first": f"author={RARE}&sort=-created_at",
    "q, rare": f"q={RARE}",
    "q, common": "q=novel",
    "q, absent": f"q={ABSENT}",
    "q, rare + common": f"q={RARE}+{COMMON}",
    "q, common + common": f"q=novel+{COMMON}",
    "count": "count=true&limit=1",
    "count of a common genre": "genre=novel&count=true&limit=1",
}


class BadAnswer(Exception):
    """A request failed, so its speed says nothing."""


class Timing(NamedTuple):
    """`cpu_us` is what a request costs server and PostgreSQL together."""

    median_ms: float
    p99_ms: float
    cpu_us: float


class Effort(NamedTuple):
    """How long a question is asked: so many times, or at most so many seconds."""

    requests: int
    seconds: float


class Request(NamedTuple):
    path: str
    method: str = "GET"
    book: dict[str, Any] | None = None


class Library:
    """A served library, and the last answer of it; `processes` are those that it runs in, by the first of each tree."""

    def __init__(self, port: int, books: int, processes: Collection[int]) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=120)
        self.books = books
        self.processes = processes
        self.answer = b""

    def ask(self, request: Request) -> float:
        """Answers the milliseconds it took."""
        body = json.dumps(request.book) if request.book else None
        began = time.perf_counter()
        self.connection.request(
            request.method, request.path, body, {"Content-Type": "application/json"} if body else {}
        )
        response = self.connection.getresponse()
        self.answer = response.read()
        took = time.perf_counter() - began
        if response.status not in (200, 201):
            raise BadAnswer(f"{request.path}: {response.status} {self.answer[:500]!r}")
        return took * 1000


Question = Callable[[Library], Iterator[Request]]


def timed(library: Library, question: Question, effort: Effort) -> Timing:
    requests = question(library)
    for request in islice(requests, WARM_UP):
        library.ask(request)
    cpu, times, deadline = cpu_seconds(*library.processes), list[float](), time.monotonic() + effort.seconds
    for request in islice(requests, effort.requests):
        times.append(library.ask(request))
        if time.monotonic() > deadline and len(times) >= LEAST_REQUESTS:
            break
    cpu_us = (cpu_seconds(*library.processes) - cpu) / len(times) * 1e6
    return Timing(statistics.median(times), sorted(times)[int(len(times) * 0.99)], cpu_us)


def asked(path: str) -> Question:
    return lambda _: cycle([Request(path)])


def any_book(library: Library) -> Iterator[Request]:
    return (Request(address) for address in addresses(library))


def addresses(library: Library) -> Iterator[str]:
    # 7,919 is prime: it meets every book of a library, far apart.
    return (f"/api/books/{number * 7_919 % library.books + 1}" for number in count())


def deep_skip(library: Library) -> Iterator[Request]:
    return asked(f"/api/books?skip={library.books * 9 // 10}")(library)


def deep_pages(library: Library) -> Iterator[Request]:
    """The pages behind four fifths of the list, or behind 100,000 books: as deep as a cursor can soon be taken."""
    query = "sort=title&limit=500"
    for _ in range(min(library.books * 4 // 5, 100_000) // 500):
        library.ask(Request(f"/api/v2/books?{query}"))
        query = following(library)
    deep = query.replace("limit=500", "limit=100")
    while True:
        query = deep
        while query:
            yield Request(f"/api/v2/books?{query}")
            query = following(library)


def following(library: Library) -> str:
    """The query of the next page; the address before it is the public one, which nobody serves here."""
    return urlsplit(json.loads(library.answer)["next"] or "").query


def new_books(library: Library) -> Iterator[Request]:
    for number in count():
        yield Request("/api/books", "POST", new_book(number))


def new_book(number: int) -> dict[str, Any]:
    return {
        "title": f"The Lighthouse of Perth, volume {number}",
        "author": "Mary Johnson",
        "year": 1990,
        "isbn": isbn(number),
        "genre": "Novel",
    }


def isbn(number: int) -> str:
    """One with a true check digit, which no seed has."""
    digits = f"978{number:09d}"
    return digits + ean.calc_check_digit(digits)


def new_titles(library: Library) -> Iterator[Request]:
    for number, address in enumerate(addresses(library)):
        yield Request(address, "PUT", {"title": f"The Lighthouse of Perth, edition {number}"})


def removals(library: Library) -> Iterator[Request]:
    return (Request(address, "DELETE") for address in addresses(library))


QUESTIONS: dict[str, Question] = {
    "get one": any_book,
    "first page": asked("/api/books"),
    "first page, version 2": asked("/api/v2/books"),
    "keyset page": deep_pages,
    "deep skip": deep_skip,
    **{f"sort={sort}": asked(f"/api/v2/books?sort={sort}") for sort in SORTS},
    **{name: asked(f"/api/v2/books?{query}") for name, query in FILTERS.items()},
    "POST": new_books,
    "PUT": new_titles,
    # Last: what it removes is asked for above.
    "DELETE": removals,
}
# What should take no longer however many books there are.
LEVEL = ["get one", "first page", "first page, version 2", "keyset page", "rare author"]
