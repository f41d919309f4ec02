"""Writers that change books while connections to PostgreSQL are lost, and the check of what they stored."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tests.support.database_proxy import DatabaseProxy, Fault

# Stands for the id of a book that does not exist yet.
NEW_BOOK = 0
SHARED_BOOK = 1
# Books whose events do not lead to their state. Seeded books have no event of their creation.
WRONG_BOOKS_SQL = """
    SELECT count(*) FROM (
        SELECT subject, count(*) FILTER (WHERE kind = 'book.created') AS created,
            count(*) FILTER (WHERE kind = 'book.updated') AS updated,
            count(*) FILTER (WHERE kind = 'book.deleted') AS deleted
        FROM webhooks_event GROUP BY subject
    ) AS event FULL JOIN books_book AS book ON book.id = subject
    WHERE coalesce(created, 0) <> (coalesce(subject, id) > %(seeded)s)::int
        OR coalesce(deleted, 0) <> (id IS NULL)::int
        OR version <> 1 + coalesce(updated, 0)
"""


class Writer:
    """A client that adds, changes and deletes books of its own, and changes a book of all writers, until it is stopped.

    `acknowledged` and `unknown` count its requests by kind and book: those that were answered as they should be, and
    those that were answered 503, which may have been executed.
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
            "genre": "Novel",
        }
        created = self.send("created", NEW_BOOK, 201, "POST", "", json=book)
        self.send("updated", SHARED_BOOK, 200, "PATCH", f"/{SHARED_BOOK}", json={"title": book["isbn"]})
        if created.status_code != 201:
            return
        pk, headers = created.json()["id"], {"If-Match": created.headers["ETag"]}
        self.send("updated", pk, 200, "PATCH", f"/{pk}", json={"year": -1 - turn}, headers=headers)
        if turn % 2:
            self.send("deleted", pk, 204, "DELETE", f"/{pk}")

    def send(self, kind: str, pk: int, expected: int, method: str, path: str, **options: Any) -> httpx.Response:
        answer = self.client.request(method, f"/api/v2/books{path}", **options)
        if answer.status_code == expected:
            self.acknowledged[kind, pk] += 1
        elif answer.status_code == 503 and "Retry-After" in answer.headers:
            self.unknown[kind, pk] += 1
        else:
            self.errors.append(f"{method}: {answer.status_code} {answer.text}")
        return answer


@contextmanager
def run_writers(url: str, number: int) -> Iterator[list[Writer]]:
    """Runs writers during the block. Raises what they raise."""
    writers = [Writer(url, number) for number in range(number)]
    with ThreadPoolExecutor(number) as pool:
        futures = [pool.submit(writer.run) for writer in writers]
        try:
            yield writers
        finally:
            for writer in writers:
                writer.is_stopped = True
    for future in futures:
        future.result()


class FaultyProxy(DatabaseProxy):
    """Breaks every twentieth statement, in each way in turn, while `is_breaking`."""

    is_breaking = False
    fault_count = 0

    def __init__(self, folder: Path, parameters: dict[str, Any]) -> None:
        super().__init__(folder, parameters)
        # Many threads take the next ones.
        self.numbers, self.next_faults = count(1), cycle(Fault)

    def begin_statement(self, message: bytes) -> Fault | None:
        if not self.is_breaking or next(self.numbers) % 20:
            return None
        self.fault_count += 1
        return next(self.next_faults)


def count_acknowledged(writers: Iterable[Writer]) -> Counter[tuple[str, int]]:
    return sum((writer.acknowledged for writer in writers), Counter())


def summarize_writes(control: psycopg.Connection, writers: Sequence[Writer]) -> str:
    acknowledged, unknown = count_acknowledged(writers).total(), count_unknown(writers).total()
    executed = count_executed(control).total()
    unanswered = executed - acknowledged
    return f"{acknowledged:,} writes acknowledged; {unknown:,} answered 503, of which {unanswered:,} were executed"


def count_wrong(control: psycopg.Connection, writers: Sequence[Writer], seeded: int) -> int:
    """Counts false answers, acknowledged writes without an event, events that no write explains, events without a
    delivery or a row in the history, and books that are not in the state that their events say.

    `seeded` is the highest id of the seeded books.
    """
    acknowledged, unknown, executed = count_acknowledged(writers), count_unknown(writers), count_executed(control)
    unexplained = (acknowledged - executed).total() + (executed - acknowledged - unknown).total()
    [(books,)] = control.execute(WRONG_BOOKS_SQL, {"seeded": seeded}).fetchall()
    count_rows_sql = "SELECT (SELECT count(*) FROM webhooks_delivery), (SELECT count(*) FROM books_change)"
    [counts] = control.execute(count_rows_sql).fetchall()
    missing = sum(abs(executed.total() - int(rows)) for rows in counts)
    false_answers = sum(len(writer.errors) for writer in writers)
    return false_answers + unexplained + int(books) + missing


def count_unknown(writers: Iterable[Writer]) -> Counter[tuple[str, int]]:
    return sum((writer.unknown for writer in writers), Counter())


def count_executed(control: psycopg.Connection) -> Counter[tuple[str, int]]:
    """Counts the events by the last word of their kind and by their book; new books count together."""
    rows = control.execute("SELECT split_part(kind, '.', 2), subject FROM webhooks_event").fetchall()
    return Counter((kind, NEW_BOOK if kind == "created" else subject) for kind, subject in rows)
