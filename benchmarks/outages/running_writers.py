"""What the outages share: a library whose books writers change while others watch it, and the check at the end."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Event

import httpx

from benchmarks import competitors
from benchmarks.competitors import Server
from benchmarks.deliveries import CREATE_ENDPOINTS_CODE, WAIT_TIMEOUT, Library, wait_until
from benchmarks.support import databases, load, writers
from benchmarks.support.arguments import note
from benchmarks.support.findings import Finding
from benchmarks.support.writers import Writer
from tests.support.sql import fetch_all

# The library is not measured before it answers with ten of its books.
SEEDED_BOOK_COUNT = 20
# So many acknowledged writes say that the service is back.
ENOUGH_WRITES = 50
TOKEN = "the-token-of-this-measurement"  # noqa: S105  # of a throw-away library
# Seconds between two requests of a watch, after which one is given up, and within which one must be answered.
PROBE_PAUSE, TIMEOUT = 0.1, 30.0
ANSWER_LIMIT, ALIVE_LIMIT, REPORT_LIMIT = 8.0, 2.0, 3.0


def fill(library: Library, book_count: int = SEEDED_BOOK_COUNT) -> None:
    """Adds books, and an endpoint that nobody serves: each event has one delivery."""
    databases.seed_library(library.url, book_count)
    library.run_code(CREATE_ENDPOINTS_CODE.format(paths=["well"], port=9))


@contextmanager
def serve_writers(url: str, count: int, **settings: str) -> Iterator[tuple[Server, list[Writer]]]:
    """Serves a library whose database will fail, and runs writers during the block.

    A process of the server that ends meanwhile is an error of the first writer.
    """
    with competitors.start_quiet_library(url, **{"LIBRARY_ACCESS": "open", **settings}) as server:
        processes = list_web_processes(server)
        with writers.run_writers(f"http://127.0.0.1:{server.port}", count) as running:
            yield server, running
        running[0].errors += ["A process of the server ended."] * count_ended(server, processes)
    note_errors(running)


def list_web_processes(server: Server) -> set[int]:
    return {process.pid for process in load.iter_processes() if process.parent == server.pid}


def count_ended(server: Server, processes: set[int]) -> int:
    """Counts those of the processes that the server has no more."""
    return len(processes - list_web_processes(server))


def build_finding(
    fault: str, url: str, running: Sequence[Writer], *results: str, wrong: int = 0, seeded: int = SEEDED_BOOK_COUNT
) -> Finding:
    """Adds what the writers found in the database at this address to the other results."""
    fetch = partial(fetch_all, url)
    result = "; ".join([writers.summarize_writes(fetch, running), *results])
    return Finding(fault, result, wrong + writers.count_wrong(fetch, running, seeded))


def wait_for_writes(running: Sequence[Writer], count: int = ENOUGH_WRITES) -> float:
    """Waits until so many more writes are acknowledged. Returns the seconds until the first of them."""
    start, before = time.monotonic(), writers.count_acknowledged(running).total()
    wait_until(lambda: writers.count_acknowledged(running).total() > before, WAIT_TIMEOUT)
    seconds = time.monotonic() - start
    wait_until(lambda: writers.count_acknowledged(running).total() >= before + count, WAIT_TIMEOUT)
    return seconds


def note_errors(running: Sequence[Writer]) -> None:
    for error in [error for writer in running for error in writer.errors][:5]:
        note(f"  {error}")


class Watch:
    """Asks for an address again and again, and knows the seconds of the answer that took longest.

    An answer that does not come counts as one after TIMEOUT seconds.
    """

    def __init__(self, url: str, limit: float) -> None:
        self.url, self.limit = url, limit
        self.slowest = 0.0

    def run(self, stop: Event) -> None:
        with httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=TIMEOUT) as client:
            while not stop.wait(PROBE_PAUSE):
                start = time.perf_counter()
                try:
                    client.get(self.url)
                except httpx.HTTPError:
                    self.slowest = max(self.slowest, TIMEOUT)
                self.slowest = max(self.slowest, time.perf_counter() - start)

    def __str__(self) -> str:
        return f"{httpx.URL(self.url).path} {self.slowest:.1f}"


@contextmanager
def run_watches(watches: Sequence[Watch]) -> Iterator[None]:
    """Runs watches during the block. Raises what they raise."""
    stop = Event()
    with ThreadPoolExecutor(len(watches)) as pool:
        futures = [pool.submit(watch.run, stop) for watch in watches]
        try:
            yield
        finally:
            stop.set()
    for future in futures:
        future.result()


def count_late(watches: Sequence[Watch], running: Sequence[Writer] = ()) -> int:
    """Counts the watches, and the writers together as one, that waited too long."""
    slowest = max((writer.slowest for writer in running), default=0)
    return (slowest > ANSWER_LIMIT) + sum(watch.slowest > watch.limit for watch in watches)


def summarize_waits(watches: Sequence[Watch], running: Sequence[Writer]) -> str:
    slowest = max(writer.slowest for writer in running)
    return f"the slowest answers in s: writes {slowest:.1f}, {', '.join(map(str, watches))}"
