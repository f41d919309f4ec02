"""PostgreSQL hangs amid writes, and then goes on: the library answers meanwhile, and loses nothing."""

import os
import signal
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import competitors
from benchmarks.deliveries import Library, create_postgresql_library
from benchmarks.outages.running_writers import (
    ALIVE_LIMIT,
    REPORT_LIMIT,
    TOKEN,
    Watch,
    build_finding,
    count_late,
    fill,
    run_watches,
    serve_writers,
    summarize_waits,
    wait_for_writes,
)
from benchmarks.support import load
from benchmarks.support.findings import Finding
from benchmarks.support.writers import Writer
from tests.support.database_proxy import DatabaseProxy, serve_proxy
from tests.support.postgres import Cluster

# Seconds of a hang: more than an answer may take.
WRITER_COUNT, HANGS, HANG_SECONDS = 16, 3, 10.0
SETTINGS = {"WEB_CONCURRENCY": "1", "WEB_THREADS": "8", "METRICS_TOKEN": TOKEN}


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
    begin = partial(stop_processes, partial(list_sessions, library))
    yield Hang("SIGSTOP of the sessions", library.url, begin, may_fill_threads=True)


def hang_repeatedly(library: Library, hang: Hang) -> Finding:
    health_port = competitors.find_free_port()
    with serve_writers(hang.url, WRITER_COUNT, **SETTINGS, HEALTH_PORT=str(health_port)) as (server, running):
        alive_port = health_port if hang.may_fill_threads else server.port
        addresses = {(alive_port, "livez"): ALIVE_LIMIT, (health_port, "readyz"): REPORT_LIMIT}
        addresses[health_port, "metrics"] = REPORT_LIMIT
        watches = [Watch(f"http://127.0.0.1:{port}/{name}", limit) for (port, name), limit in addresses.items()]
        with run_watches(watches):
            seconds = max([hang_once(hang, running) for _ in range(HANGS)])
    fault = f"{HANGS} × {hang.name}, {HANG_SECONDS:.0f} s each"
    results = (summarize_waits(watches, running), f"back {seconds:.1f} s after it went on")
    return build_finding(fault, library.url, running, *results, wrong=count_late(watches, running))


def hang_once(hang: Hang, running: Sequence[Writer]) -> float:
    """Returns the seconds until the first write that is acknowledged after the hang."""
    wait_for_writes(running, 300)
    with hang.begin():
        time.sleep(HANG_SECONDS)
    return wait_for_writes(running)


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
