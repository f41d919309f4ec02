"""Edits all books of a library and undoes it, while workers are killed and somebody else changes books."""

import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx

from benchmarks import competitors
from benchmarks.deliveries import LIBRARIES_BY_DATABASE, Library, wait_until
from benchmarks.support import databases
from benchmarks.support.arguments import note
from benchmarks.support.credentials import create_credentials
from benchmarks.support.findings import Finding

BOOK_COUNT = 100_000
# Workers that are killed during the edit, and again during its undo.
KILLS = 3
# Seconds between two changes of the other writer, and that one of them may take at most.
WRITE_INTERVAL, MAX_SECONDS = 0.02, 0.5
MAX_MEGABYTES = 150
# Seconds before the operation in which the other writer is alone.
ALONE_SECONDS = 10
EDIT = {"kind": "edit", "filter": {}, "set": {"genre": "Edited", "year": 1}}
BOOKS_SQL = "SELECT id, title, author, year, isbn, genre, available, created_at FROM books_book ORDER BY id"
# A worker that is killed had the only lease.
END_LEASE_SQL = {
    "PostgreSQL": "UPDATE books_operation SET next_at = now() WHERE next_at IS NOT NULL",
    "SQLite": "UPDATE books_operation SET next_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE next_at IS NOT NULL",
}
# Books that an operation did not change exactly once, and books whose events are not as many as their changes.
REPEATED_SQL = (
    "SELECT count(*) FROM (SELECT book_id FROM books_change WHERE operation_id IS NOT NULL"
    " GROUP BY operation_id, book_id HAVING count(*) <> 1) AS repeated"
)
UNEQUAL_EVENTS_SQL = (
    "SELECT count(*) FROM (SELECT book_id, count(*) AS changes FROM books_change GROUP BY book_id) AS history"
    " LEFT JOIN (SELECT subject, count(*) AS events FROM webhooks_event GROUP BY subject) AS told"
    " ON told.subject = history.book_id WHERE coalesce(events, 0) <> changes"
)


@dataclass
class Writer:
    """Gives one of the first books after the other a new title. `titles` are those that the library acknowledged."""

    client: httpx.Client
    book_count: int = BOOK_COUNT
    titles: dict[int, str] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def run(self, stop: Event) -> None:
        number = 0
        while not stop.wait(WRITE_INTERVAL):
            number += 1
            # A step without a common factor reaches books before and behind the operation.
            pk = 1 + number * 7_919 % self.book_count
            start = time.perf_counter()
            answer = self.client.patch(f"/api/v2/books/{pk}", json={"title": f"By another {number}"})
            self.seconds.append(time.perf_counter() - start)
            if answer.status_code == 200:
                self.titles[pk] = f"By another {number}"
            else:
                self.errors.append(f"PATCH of book {pk}: {answer.status_code}")


@dataclass
class Run:
    """An operation from its begin to its end, with the highest memory of its workers."""

    seconds: float
    megabytes: float
    operation: dict[str, Any]


def check_operations(options: Namespace) -> Iterator[Finding]:
    for database, create_library in LIBRARIES_BY_DATABASE.items():
        with create_library() as library:
            databases.seed_library(library.url, BOOK_COUNT)
            before = library.execute_sql(BOOKS_SQL)
            with competitors.start_library(library.url, **library.environment) as server:
                key = dict([create_credentials(library.url, server.port)["api-key"]])
                client = httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers=key, timeout=60)
                with client, run_writer(Writer(client)) as writer:
                    time.sleep(ALONE_SECONDS)
                    alone = max(writer.seconds)
                    begin = partial(client.post, "/api/v2/operations", json=EDIT)
                    edit = run_operation(library, database, client, begin)
                    changed = library.execute_sql(BOOKS_SQL)
                    begin = partial(client.post, f"/api/v2/operations/{edit.operation['id']}/undo")
                    undo = run_operation(library, database, client, begin)
            problems = find_problems(library, writer, before, changed, [edit, undo])
        for problem in problems[:10]:
            note(f"  {problem}")
        yield Finding(f"{2 * KILLS} × kill -9 on {database}", summarize(edit, undo, writer, alone), len(problems))


@contextmanager
def run_writer(writer: Writer) -> Iterator[Writer]:
    stop = Event()
    thread = Thread(target=writer.run, args=[stop])
    thread.start()
    try:
        yield writer
    finally:
        stop.set()
        thread.join()


def run_operation(library: Library, database: str, client: httpx.Client, begin: Callable[[], httpx.Response]) -> Run:
    """Kills the worker after equal parts of the books. The last one finishes."""
    start = time.perf_counter()
    address = begin().raise_for_status().headers["Location"]

    def read() -> dict[str, Any]:
        operation: dict[str, Any] = client.get(address).json()
        return operation

    megabytes = 0.0
    for number in range(1, KILLS + 2):
        worker = start_worker(library)
        try:
            share = BOOK_COUNT * number // (KILLS + 1)
            wait_until(partial(has_done, read, share if number <= KILLS else BOOK_COUNT))
            megabytes = max(megabytes, read_peak(worker.pid))
        finally:
            worker.kill()
            worker.wait()
        library.execute_sql(END_LEASE_SQL[database])
    return Run(time.perf_counter() - start, megabytes, read())


def start_worker(library: Library) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "manage.py", "run_operations"]
    return subprocess.Popen(command, cwd=competitors.ROOT, env=library.environment, stdout=subprocess.DEVNULL)


def has_done(read: Callable[[], dict[str, Any]], share: int) -> bool:
    operation = read()
    done = operation["changed"] + operation["unchanged"] + operation["refused"]
    return operation["state"] in ("done", "failed") or (share < BOOK_COUNT and done >= share)


def read_peak(pid: int) -> float:
    """Returns the most memory that the process had, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [peak] = [line.split()[1] for line in lines if line.startswith("VmHWM")]
    return int(peak) / 1024


def find_problems(
    library: Library, writer: Writer, before: list[Any], changed: list[Any], runs: list[Run]
) -> list[str]:
    problems = list(writer.errors)
    for run in runs:
        if (run.operation["state"], run.operation["changed"]) != ("done", BOOK_COUNT):
            problems.append(f"The operation is {run.operation}")
        if run.megabytes > MAX_MEGABYTES:
            problems.append(f"A worker took {run.megabytes:.0f} MB")
    problems += [f"Book {row[0]} was not edited" for row in changed if (row[5], row[3]) != ("Edited", 1)]
    expected = [(row[0], writer.titles.get(row[0], row[1]), *row[2:]) for row in before]
    after = library.execute_sql(BOOKS_SQL)
    pairs = zip(expected, after, strict=False)
    problems += [f"Book {old[0]} is {new}" for old, new in pairs if tuple(old) != tuple(new)]
    counts = {"changed twice or not": REPEATED_SQL, "with other events than changes": UNEQUAL_EVENTS_SQL}
    for name, sql in counts.items():
        [(count,)] = library.execute_sql(sql)
        problems += [f"{count:,} books {name}"] if count else []
    if len(after) != len(before):
        problems.append(f"{len(before):,} books are {len(after):,}")
    if max(writer.seconds) > MAX_SECONDS:
        problems.append(f"A change took {max(writer.seconds):.2f} s")
    return problems


def summarize(edit: Run, undo: Run, writer: Writer, alone: float) -> str:
    return (
        f"{BOOK_COUNT:,} books edited in {edit.seconds:.0f} s and undone in {undo.seconds:.0f} s, workers restarted;"
        f" {max(edit.megabytes, undo.megabytes):.0f} MB; {len(writer.seconds):,} other changes waited"
        f" {max(writer.seconds) * 1000:.0f} ms at most, half of them under"
        f" {sorted(writer.seconds)[len(writer.seconds) // 2] * 1000:.0f} ms; before the operation {alone * 1000:.0f} ms"
        " at most"
    )
