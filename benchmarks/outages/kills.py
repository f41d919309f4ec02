"""32 clients change books while everything is killed at random, again and again."""

import os
import random
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import psycopg

from benchmarks import competitors
from benchmarks.deliveries import Library, count_lost, start_library_and_receiver, summarize_requests, wait_until
from benchmarks.outages.running_writers import SEEDED_BOOK_COUNT, build_finding, note_errors, wait_for_writes
from benchmarks.support import databases, load, writers
from benchmarks.support.arguments import note
from benchmarks.support.findings import Finding
from tests.support.postgres import find_binary, run_unprivileged

WRITER_COUNT = 32
SECONDS_BETWEEN_KILLS = (4.0, 12.0)
MAKE_DUE_SQL = "UPDATE webhooks_delivery SET next_at = now() WHERE next_at > now()"


class Supervisor:
    """Starts the server and a worker again whenever they end, with what they leave behind, as systemd does."""

    def __init__(self, library: Library, port: int) -> None:
        environment = library.environment | {"LIBRARY_ACCESS": "open", "PORT": str(port), "LOG_LEVEL": "critical"}
        self.environment = environment
        self.commands = {name: [sys.executable, "manage.py", name] for name in ("serve", "deliver_webhooks")}
        self.processes = {name: self.start(name) for name in self.commands}
        self.stop_event = Event()
        self.thread = Thread(target=self.watch)
        self.thread.start()

    def start(self, name: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self.commands[name],
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


def check_random_kills(options: Namespace) -> Iterator[Finding]:
    with start_library_and_receiver("PostgreSQL", "well") as (library, receiver):
        databases.seed_library(library.url, SEEDED_BOOK_COUNT)
        port = competitors.find_free_port()
        with (
            supervise(library, port) as supervisor,
            writers.run_writers(f"http://127.0.0.1:{port}", WRITER_COUNT, may_lose_server=True) as running,
        ):
            wait_for_writes(running)
            kills = kill_at_random(supervisor, library, options.seconds)
            seconds = wait_for_writes(running)
            for writer in running:
                writer.is_stopped = True
            wait_until(lambda: has_delivered(library), pause=1)
        note_errors(running)
        requests = receiver.list_requests()
        killed = ", ".join(f"{count} × {name}" for name, count in sorted(kills.items()))
        results = (f"back {seconds:.1f} s after the last kill", summarize_requests(requests))
        fault, lost = f"Killed in {options.seconds} s: {killed}", count_lost(library, requests)
        yield build_finding(fault, library.url, running, *results, wrong=lost)


@contextmanager
def supervise(library: Library, port: int) -> Iterator[Supervisor]:
    supervisor = Supervisor(library, port)
    try:
        yield supervisor
    finally:
        supervisor.stop()


def has_delivered(library: Library) -> bool:
    library.execute_sql(MAKE_DUE_SQL)
    return library.count_rows("state <> 'delivered'") == 0


def kill_at_random(supervisor: Supervisor, library: Library, seconds: float) -> Counter[str]:
    """Returns how often each was killed."""
    kills: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(random.uniform(*SECONDS_BETWEEN_KILLS))  # noqa: S311  # no secret
        name = random.choice(list(KILLS))  # noqa: S311
        # What is to be killed may be dead already, or the database may be starting.
        with suppress(ProcessLookupError, IndexError, ValueError, psycopg.OperationalError):
            KILLS[name](supervisor, library)
            kills[name] += 1
            note(f"  {time.monotonic():.0f} {name}")
    return kills


def kill_web_process(supervisor: Supervisor, library: Library) -> None:
    server = supervisor.processes["serve"].pid
    children = [process.pid for process in load.iter_processes() if process.parent == server]
    os.kill(random.choice(children), signal.SIGKILL)  # noqa: S311


def kill_server(supervisor: Supervisor, library: Library) -> None:
    supervisor.processes["serve"].kill()


def kill_worker(supervisor: Supervisor, library: Library) -> None:
    supervisor.processes["deliver_webhooks"].kill()


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


KILLS: dict[str, Callable[[Supervisor, Library], None]] = {
    "a web process": kill_web_process,
    "the server": kill_server,
    "the worker": kill_worker,
    "connections": end_connections,
    "a backend": kill_backend,
    "PostgreSQL": restart_database,
}
