"""Writers that change books while something fails, and the check of what they stored."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any

import httpx

from benchmarks.support.folding import list_broken_histories

# Stands for the id of a book that does not exist yet.
NEW_BOOK = 0
SHARED_BOOK = 1
COUNT_EVENTS_SQL = "SELECT kind, subject, count(*) FROM webhooks_event GROUP BY kind, subject"
COUNT_OPERATED_SQL = "SELECT book_id, count(*) FROM books_change WHERE operation_id IS NOT NULL GROUP BY book_id"
Fetch = Callable[[str], Sequence[tuple[Any, ...]]]
"""Runs a statement in the database of the library and returns its rows."""


class Writer:
    """A client that adds, changes and deletes books of its own, and changes a book of all writers, until it is stopped.

    `acknowledged` and `unknown` count its requests by kind and book: those that were answered as they should be, and
    those that may have been executed: they were answered 503 or not at all.
    """

    def __init__(self, url: str, number: int) -> None:
        self.url, self.number = url, number
        self.acknowledged: Counter[tuple[str, int]] = Counter()
        self.unknown: Counter[tuple[str, int]] = Counter()
        self.errors: list[str] = []
        self.is_stopped = False

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=60) as self.client:
            turns = count()
            while not self.is_stopped:
                self.write(next(turns))

    def write(self, turn: int) -> None:
        book = {
            "title": "Emma",
            "author": "Jane Austen",
            "year": turn,
            "isbn": f"{self.number}-{turn}",
            # Operations edit novels.
            "genre": "Written meanwhile",
        }
        created = self.send("created", NEW_BOOK, 201, "POST", "", json=book)
        self.send("updated", SHARED_BOOK, 200, "PATCH", f"/{SHARED_BOOK}", json={"title": book["isbn"]})
        if not created or created.status_code != 201:
            return
        pk, headers = created.json()["id"], {"If-Match": created.headers["ETag"]}
        self.send("updated", pk, 200, "PATCH", f"/{pk}", json={"year": -1 - turn}, headers=headers)
        if turn % 2:
            self.send("deleted", pk, 204, "DELETE", f"/{pk}")

    def send(self, kind: str, pk: int, expected: int, method: str, path: str, **options: Any) -> httpx.Response | None:
        """Returns the response, or None if the server ended meanwhile."""
        try:
            response = self.client.request(method, f"/api/v2/books{path}", **options)
        except httpx.TransportError:
            self.unknown[kind, pk] += 1
            time.sleep(0.1)
            return None
        if response.status_code == expected:
            self.acknowledged[kind, pk] += 1
        elif response.status_code == 503 and "Retry-After" in response.headers:
            self.unknown[kind, pk] += 1
        else:
            self.errors.append(f"{method}: {response.status_code} {response.text}")
        return response


@contextmanager
def run_writers(url: str, count: int) -> Iterator[list[Writer]]:
    """Runs writers during the block. Raises what they raise."""
    writers = [Writer(url, number) for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(writer.run) for writer in writers]
        try:
            yield writers
        finally:
            for writer in writers:
                writer.is_stopped = True
    for future in futures:
        future.result()


def count_acknowledged(writers: Iterable[Writer]) -> Counter[tuple[str, int]]:
    # The writers may go on meanwhile: a copy is made at once.
    return sum((Counter(dict(writer.acknowledged)) for writer in writers), Counter())


def summarize_writes(fetch: Fetch, writers: Sequence[Writer]) -> str:
    acknowledged, unknown = count_acknowledged(writers).total(), count_unknown(writers).total()
    unanswered = (count_executed(fetch) - count_acknowledged(writers)).total()
    return (
        f"{acknowledged:,} writes acknowledged; {unknown:,} answered 503 or not, of which {unanswered:,} were executed"
    )


def count_wrong(fetch: Fetch, writers: Sequence[Writer], seeded: int) -> int:
    """Counts false answers, acknowledged writes without an event, events that no write explains, events without a
    delivery or a row in the history, and books that are not in the state that their events and their history say.

    `seeded` is the highest id of the seeded books.
    """
    executed, acknowledged = count_executed(fetch), count_acknowledged(writers)
    events, deliveries, changes = (
        int(fetch(f"SELECT count(*) FROM {table}")[0][0])
        for table in ("webhooks_event", "webhooks_delivery", "books_change")
    )
    return (
        sum(len(writer.errors) for writer in writers)
        + (acknowledged - executed).total()
        + (executed - acknowledged - count_unknown(writers)).total()
        + count_wrong_books(fetch, seeded)
        + len(list_broken_histories(fetch, seeded))
        + abs(events - deliveries)
        + abs(events - changes)
    )


def count_wrong_books(fetch: Fetch, seeded: int) -> int:
    """Seeded books have no event of their creation."""
    events = Counter({(kind, pk): count for kind, pk, count in fetch(COUNT_EVENTS_SQL)})
    versions: dict[int, int] = dict(fetch("SELECT id, version FROM books_book"))
    return sum(
        events["book.created", pk] != (pk > seeded)
        or events["book.deleted", pk] != (pk not in versions)
        or versions.get(pk, 0) != (1 + events["book.updated", pk] if pk in versions else 0)
        for pk in versions.keys() | {pk for _, pk in events}
    )


def count_unknown(writers: Iterable[Writer]) -> Counter[tuple[str, int]]:
    return sum((writer.unknown for writer in writers), Counter())


def count_executed(fetch: Fetch) -> Counter[tuple[str, int]]:
    """Counts the events of writers by the last word of their kind and by their book; new books count together."""
    counts: Counter[tuple[str, int]] = Counter()
    for kind, pk, events in fetch(COUNT_EVENTS_SQL):
        word = kind.rpartition(".")[2]
        counts[word, NEW_BOOK if word == "created" else pk] += events
    for pk, changes in fetch(COUNT_OPERATED_SQL):
        counts["updated", pk] -= changes
    return counts
