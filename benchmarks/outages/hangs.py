"""PostgreSQL hangs amid writes, and then goes on: the library answers meanwhile, and loses nothing."""

import os
import signal
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import NamedTuple

import httpx

from benchmarks import competitors
from benchmarks.deliveries import Library, create_postgresql_library
from benchmarks.outages.running_writers import SEEDED_BOOK_COUNT, fill, note_errors, wait_for_writes
from benchmarks.support import load, writers
from benchmarks.support.findings import Finding
from tests.support.database_proxy import DatabaseProxy, serve_proxy
from tests.support.postgres import Cluster

WRITER_COUNT, HANGS = 16, 3
# Seconds of a hang: more than an answer may take, and between two requests of a probe.
HANG_SECONDS, PROBE_PAUSE = 10.0, 0.1
TOKEN = "the-token-of-this-measurement"  # noqa: S105  # of a throw-away library
SETTINGS = {"LIBRARY_ACCESS": "open", "WEB_CONCURRENCY": "1", "WEB_THREADS": "8", "METRICS_TOKEN": TOKEN}
# Seconds within which writers, and each address that is watched, must be answered.
ANSWER_LIMIT = 8.0
ALIVE_LIMIT, REPORT_LIMIT = 2.0, 3.0


class Watch:
    """Asks for an address again and again, and knows the seconds of the answer that took longest."""

    def __init__(self, url: str, limit: float) -> None:
        self.url, self.limit = url, limit
        self.slowest = 0.0
        self.is_stopped = Event()

    def run(self) -> None:
        with httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
            while not self.is_stopped.wait(PROBE_PAUSE):
                self.slowest = max(self.slowest, client.get(self.url).elapsed.total_seconds())


class Hang(NamedTuple):
    """How the database of a library hangs: the address that the library has for it, and what makes it hang."""

    name: str
    url: str
    begin: Callable[[], AbstractContextManager[None]]
    # All threads of the server can wait for their sessions: only the other port must tell that it lives.
    may_fill_threads: bool = False


def check_hung_database(options: Namespace) -> Iterator[Finding]:
    for prepare in (prepare_server, prepare_network, prepare_sessions):
        with create_postgresql_library() as library, prepare(library) as hang:
            fill(library)
            yield hang_repeatedly(library, hang)


@contextmanager
def prepare_server(library: Library) -> Iterator[Hang]:
    yield Hang("SIGSTOP of PostgreSQL", library.url, partial(stop_processes, partial(list_processes, library)))


@contextmanager
def prepare_network(library: Library) -> Iterator[Hang]:
    with serve_proxy(DatabaseProxy, {"conninfo": library.url}) as proxy:
        yield Hang("a network that drops everything", Cluster(proxy.folder).url(), proxy.fall_silent)


@contextmanager
def prepare_sessions(library: Library) -> Iterator[Hang]:
    yield Hang(
        "SIGSTOP of the sessions",
        library.url,
        partial(stop_processes, partial(list_sessions, library)),
        may_fill_threads=True,
    )


def hang_repeatedly(library: Library, hang: Hang) -> Finding:
    health_port = competitors.find_free_port()
    with (
        competitors.start_quiet_library(hang.url, **SETTINGS, HEALTH_PORT=str(health_port)) as server,
        writers.run_writers(f"http://127.0.0.1:{server.port}", WRITER_COUNT) as running,
    ):
        alive_port = health_port if hang.may_fill_threads else server.port
        watches = [
            Watch(f"http://127.0.0.1:{alive_port}/livez", ALIVE_LIMIT),
            Watch(f"http://127.0.0.1:{health_port}/readyz", REPORT_LIMIT),
            Watch(f"http://127.0.0.1:{health_port}/metrics", REPORT_LIMIT),
        ]
        with run_watches(watches):
            seconds = [hang_once(hang, running) for _ in range(HANGS)]
    note_errors(running)
    return build_finding(library, hang, running, watches, max(seconds))


def hang_once(hang: Hang, running: Sequence[writers.Writer]) -> float:
    """Returns the seconds until the first write that is acknowledged after the hang."""
    wait_for_writes(running, 300)
    with hang.begin():
        time.sleep(HANG_SECONDS)
    return wait_for_writes(running)


@contextmanager
def run_watches(watches: Sequence[Watch]) -> Iterator[None]:
    with ThreadPoolExecutor(len(watches)) as pool:
        futures = [pool.submit(watch.run) for watch in watches]
        try:
            yield
        finally:
            for watch in watches:
                watch.is_stopped.set()
    for future in futures:
        future.result()


@contextmanager
def stop_processes(list_pids: Callable[[], list[int]]) -> Iterator[None]:
    pids = list_pids()
    send_signal(pids, signal.SIGSTOP)
    try:
        yield
    finally:
        send_signal(pids, signal.SIGCONT)


def send_signal(pids: Sequence[int], number: signal.Signals) -> None:
    """A session can have ended meanwhile."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def list_processes(library: Library) -> list[int]:
    """The server comes first, so that it starts no other process meanwhile."""
    postmaster = load.get_postmaster_pid(Cluster(Path(library.execute_sql("SHOW unix_socket_directories")[0][0])))
    return [process.pid for process in load.iter_process_tree(postmaster, list(load.iter_processes()))]


def list_sessions(library: Library) -> list[int]:
    rows = library.execute_sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'library-web'")
    return [pid for (pid,) in rows]


def build_finding(
    library: Library, hang: Hang, running: list[writers.Writer], watches: Sequence[Watch], seconds: float
) -> Finding:
    slowest = max(writer.slowest for writer in running)
    times = ", ".join(f"{watch.url.rpartition('/')[2]} {watch.slowest:.1f}" for watch in watches)
    result = (
        f"{writers.summarize_writes(library.execute_sql, running)}; the slowest answers in s: writes {slowest:.1f},"
        f" {times}; back {seconds:.1f} s after it went on"
    )
    late = (slowest > ANSWER_LIMIT) + sum(watch.slowest > watch.limit for watch in watches)
    wrong = writers.count_wrong(library.execute_sql, running, SEEDED_BOOK_COUNT)
    return Finding(f"{HANGS} × {hang.name}, {HANG_SECONDS:.0f} s each", result, late + wrong)
