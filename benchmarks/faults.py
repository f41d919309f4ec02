"""Checks that no event and no change is lost while clients change books and everything is killed.

`python -m benchmarks.faults` from the root.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from threading import Event, Thread

import httpx
import psycopg

from benchmarks import competitors
from benchmarks.support import databases, load, writers
from benchmarks.support.arguments import Number, note, parse_options
from benchmarks.support.credentials import create_credentials
from benchmarks.support.libraries import (
    CREATE_ENDPOINT_CODE,
    Library,
    Receiver,
    WaitTimedOut,
    create_postgresql_library,
    start_receiver,
    wait_until,
)
from tests.support.postgres import find_binary, run_unprivileged

SEEDED_BOOK_COUNT, WRITER_COUNT = 2_000, 32
# So many acknowledged writes say that the service is back. The next is killed this much later.
ENOUGH_WRITES, SECONDS_BETWEEN_KILLS = 50, (0.0, 3.0)
COMMANDS = ("serve", "deliver_webhooks", "run_operations")
# A process that was killed keeps its leases, and a delivery that failed waits.
MAKE_DUE_SQL = {
    "deliver_webhooks": "UPDATE webhooks_delivery SET next_at = now() WHERE next_at > now()",
    "run_operations": "UPDATE books_operation SET next_at = now() WHERE next_at > now()",
}
DELIVERIES_SQL = "SELECT event.uuid FROM webhooks_delivery JOIN webhooks_event AS event ON event.id = event_id"
UNDELIVERED_SQL = "SELECT count(*) FROM webhooks_delivery WHERE state <> 'delivered'"
UNFINISHED_SQL = "SELECT count(*) FROM books_operation WHERE state IN ('waiting', 'running')"
# Books that an operation changed more than once.
REPEATED_SQL = (
    "SELECT count(*) FROM (SELECT book_id FROM books_change WHERE operation_id IS NOT NULL"
    " GROUP BY operation_id, book_id HAVING count(*) > 1) AS repeated"
)


class Supervisor:
    """Starts the server and the workers again whenever they end, as systemd does."""

    def __init__(self, library: Library, port: int) -> None:
        self.environment = library.environment | {"PORT": str(port), "LOG_LEVEL": "critical"}
        self.processes = {name: self.start(name) for name in COMMANDS}
        self.stop_event = Event()
        self.thread = Thread(target=self.watch)
        self.thread.start()

    def start(self, name: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "manage.py", name],
            cwd=competitors.ROOT,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self) -> None:
        while not self.stop_event.wait(0.2):
            for name, process in self.processes.items():
                if process.poll() is not None:
                    kill_group(process)
                    self.processes[name] = self.start(name)

    def stop(self) -> None:
        self.stop_event.set()
        self.thread.join()
        for process in self.processes.values():
            kill_group(process)
            process.wait()


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def main() -> int:
    options = parse_options(
        "benchmarks.faults",
        __doc__,
        seconds=Number(1, 36_000, 600, "for which they are killed, each once at least"),
    )
    load.require_postgres()
    with create_postgresql_library() as library, start_receiver() as receiver:
        databases.seed_library(library.url, SEEDED_BOOK_COUNT)
        library.run_code(CREATE_ENDPOINT_CODE.format(port=receiver.port))
        port = competitors.find_free_port()
        url = f"http://127.0.0.1:{port}"
        key = dict([create_credentials(library.url, port)["api-key"]])
        with supervise(library, port) as supervisor, writers.run_writers(url, WRITER_COUNT) as running:
            with edit_books(url, key):
                kills, seconds = kill_at_random(supervisor, library, running, options.seconds)
            for writer in running:
                writer.is_stopped = True
            wait_until(lambda: has_finished(library), pause=1)
        killed = ", ".join(f"{count} × {name}" for name, count in sorted(kills.items()))
        results, error_count = summarize(library, receiver, running)
    print(f"Killed in {options.seconds} s: {killed}", f"back {seconds:.1f} s after the last", *results, sep="\n")
    return 1 if error_count else 0


@contextmanager
def supervise(library: Library, port: int) -> Iterator[Supervisor]:
    supervisor = Supervisor(library, port)
    try:
        yield supervisor
    finally:
        supervisor.stop()


@contextmanager
def edit_books(url: str, key: dict[str, str]) -> Iterator[None]:
    """Edits a tenth of the books as one operation, undoes it, and so on, during the block."""
    stop = Event()

    def run() -> None:
        with httpx.Client(base_url=f"{url}/api/v2/operations", headers=key, timeout=60) as client:
            for year in cycle(range(2_000)):
                edit = {"kind": "edit", "filter": {"genre": "novel"}, "set": {"year": year}}
                with suppress(httpx.HTTPError, KeyError):
                    operation = client.post("", json=edit).raise_for_status().json()
                    stop.wait(5)
                    client.post(f"/{operation['id']}/undo")
                if stop.wait(5):
                    return

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def wait_for_writes(running: list[writers.Writer]) -> float:
    """Waits for ENOUGH_WRITES more, of which the first may have been under way. Returns the seconds."""
    start, before = time.monotonic(), writers.count_acknowledged(running).total()
    wait_until(lambda: writers.count_acknowledged(running).total() >= before + ENOUGH_WRITES)
    return time.monotonic() - start


def has_finished(library: Library) -> bool:
    for statement in MAKE_DUE_SQL.values():
        library.execute_sql(statement)
    return library.count(UNDELIVERED_SQL) + library.count(UNFINISHED_SQL) == 0


def summarize(library: Library, receiver: Receiver, running: list[writers.Writer]) -> tuple[list[str], int]:
    """Returns lines, and the number of errors."""
    for error in [error for writer in running for error in writer.errors][:5]:
        note(f"  {error}")
    received = receiver.list_events()
    lost = {str(uuid).replace("-", "") for (uuid,) in library.execute_sql(DELIVERIES_SQL)} ^ set(received)
    repeated = library.count(REPEATED_SQL)
    operations = library.count("SELECT count(*) FROM books_operation")
    results = [
        writers.summarize_writes(library.execute_sql, running),
        f"{len(received):,} requests for {len(set(received)):,} events",
        f"{len(lost):,} events lost",
        f"{operations:,} operations, {repeated:,} books changed twice by one",
    ]
    wrong = writers.count_wrong(library.execute_sql, running, SEEDED_BOOK_COUNT)
    # Without an operation, nothing was tried with them.
    return results, wrong + len(lost) + repeated + (operations == 0)


def kill_at_random(
    supervisor: Supervisor, library: Library, running: list[writers.Writer], seconds: float
) -> tuple[Counter[str], float]:
    """Kills each once in a round, in any order, until the time is over.

    Returns how often each was killed, and the seconds until the service was back after the last.
    """
    kills: Counter[str] = Counter()
    end = time.monotonic() + seconds
    pause = wait_for_writes(running)
    while not kills or time.monotonic() < end:
        for name in random.sample(list(KILLS), len(KILLS)):
            time.sleep(random.uniform(*SECONDS_BETWEEN_KILLS))  # noqa: S311  # no secret
            # What is to be killed may be dead already, or the database may be starting.
            with suppress(ProcessLookupError, IndexError, ValueError, psycopg.OperationalError, WaitTimedOut):
                KILLS[name](supervisor, library)
                kills[name] += 1
            pause = wait_for_writes(running)
            note(f"  {name}, back after {pause:.1f} s")
    return kills, pause


def kill_web_process(supervisor: Supervisor, library: Library) -> None:
    server = supervisor.processes["serve"].pid
    children = [process.pid for process in load.iter_processes() if process.parent == server]
    os.kill(random.choice(children), signal.SIGKILL)  # noqa: S311


def kill_server(supervisor: Supervisor, library: Library) -> None:
    supervisor.processes["serve"].kill()


def kill_worker(supervisor: Supervisor, library: Library) -> None:
    """Another worker gets the leases of the one that was killed at once."""
    for name, statement in MAKE_DUE_SQL.items():
        supervisor.processes[name].kill()
        supervisor.processes[name].wait()
        library.execute_sql(statement)


def end_connections(supervisor: Supervisor, library: Library) -> None:
    library.execute_sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'postgres'"
        " AND random() < 0.5"
    )


def kill_backend(supervisor: Supervisor, library: Library) -> None:
    """PostgreSQL ends all connections and recovers."""
    [(pid,)] = library.execute_sql(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'library-web' ORDER BY random() LIMIT 1"
    )
    os.kill(pid, signal.SIGKILL)


def restart_database(supervisor: Supervisor, library: Library) -> None:
    if library.cluster:
        pg_ctl = [find_binary("pg_ctl"), "-D", str(library.cluster.sockets / "data"), "-w"]
        run_unprivileged(*pg_ctl, "-m", "immediate", "stop")
        time.sleep(1)
        run_unprivileged(*pg_ctl, "-l", str(library.cluster.sockets / "log"), "start")


def make_read_only(supervisor: Supervisor, library: Library) -> None:
    """All sessions of two seconds are read-only, as at a standby."""
    for action, seconds in (("SET default_transaction_read_only = on", 2), ("RESET default_transaction_read_only", 0)):
        [(name,)] = library.execute_sql("SELECT quote_ident(current_database())")
        library.execute_sql(f"SET TRANSACTION READ WRITE; ALTER DATABASE {name} {action}")
        if seconds:
            end_connections(supervisor, library)
        time.sleep(seconds)


KILLS: dict[str, Callable[[Supervisor, Library], None]] = {
    "a web process": kill_web_process,
    "the server": kill_server,
    "the workers": kill_worker,
    "connections": end_connections,
    "a backend": kill_backend,
    "PostgreSQL": restart_database,
    "writes": make_read_only,
}


if __name__ == "__main__":
    sys.exit(main())
