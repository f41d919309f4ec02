"""Measures a server: wrk sends the requests, and /proc has the CPU time that they cost."""

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.competitors import COMPETITORS, LIBRARIES, OURS, Server
from tests.support.postgres import Cluster, PostgresMissing, find_binary

WRK_SCRIPT = Path(__file__).parent.parent / "wrk" / "books.lua"
COLUMNS = {
    "get": "get one",
    "bearer": "get one, Bearer token",
    "api-key": "get one, API key",
    "list100": "list 100",
    "list10": "list 10",
    "put": "PUT",
    "post": "POST",
    "rare": "rare filter",
    "common": "common filter",
}
# The peers have no credentials.
CREDENTIAL_COLUMNS = {"bearer", "api-key"}
# What is also sent with other headers, and to a library with a rate limit.
CLIENT_COLUMNS = {"get", "list100", "list10", "rare", "common", "put", "post"}
# What the library's promises cost.
PROMISE_COLUMNS = {"put", "post"}
# Columns that are measured on a larger database.
FILTER_COLUMNS = {"rare", "common"}
WARM_UP_SECONDS = 1
WORKER_COMMAND = b"manage.py\0deliver_webhooks"
# Of which two that follow each other must show the same processes.
PROCESS_READINGS = 100
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class BadResponses(Exception):
    """Some requests failed, so their speed means nothing."""


class UnstableProcesses(Exception):
    """Processes start and end too often to read them at one moment."""


class Measurement(NamedTuple):
    """The last three are the µs of CPU time of a request."""

    per_second: float
    p50_ms: float
    p99_ms: float
    server_us: float
    worker_us: float
    postgresql_us: float

    @property
    def cpu_us(self) -> float:
        return self.server_us + self.worker_us + self.postgresql_us

    def summarize(self) -> str:
        return f"{self.per_second:,.0f}/s, p99 {self.p99_ms:.1f} ms, {self.cpu_us:,.0f} µs CPU"


@dataclass(frozen=True)
class Workload:
    """The parameters that stay the same during a run; `headers` has the name and value of a credential by column."""

    books: int
    seconds: int
    surnames: Sequence[str]
    postmaster_pid: int
    headers: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    ticks: int


def require_wrk() -> None:
    if not shutil.which("wrk"):
        sys.exit("wrk is missing, and nothing is measured without it: apt-get install wrk")


def require_postgres() -> None:
    try:
        find_binary("initdb")
    except PostgresMissing:
        sys.exit("The server programs of PostgreSQL are missing: apt-get install postgresql")


def get_postmaster_pid(cluster: Cluster) -> int:
    """PostgreSQL writes its process id into the lock file beside its socket."""
    return int((cluster.sockets / ".s.PGSQL.5432.lock").read_text().split()[0])


def takes_part(name: str, column: str) -> bool:
    if name == OURS:
        return True
    if name in LIBRARIES:
        return column in CLIENT_COLUMNS
    if COMPETITORS[name].promises:
        return column in PROMISE_COLUMNS
    return column not in CREDENTIAL_COLUMNS


def measure(server: Server, column: str, number: int, workload: Workload) -> Measurement:
    """Measures one column. Raises BadAnswers.

    `number` is the round, 0 for the warm-up. It makes new ISBNs different, and the requests equal for all competitors.
    """
    arguments = list_arguments(server, column, workload)
    roots = server.pid, workload.postmaster_pid
    ticks_before = count_ticks(*roots)
    response = run_wrk(server, column, number, workload, arguments)
    ticks = [after - before for after, before in zip(count_ticks(*roots), ticks_before, strict=True)]
    requests = response["requests"]
    cpu = [count / TICKS_PER_SECOND / requests * 1e6 for count in ticks]
    return Measurement(requests / response["seconds"], response["p50"], response["p99"], *cpu)


def list_arguments(server: Server, column: str, workload: Workload) -> Sequence[str]:
    """What the script needs beside the number of books."""
    if column in CREDENTIAL_COLUMNS:
        return workload.headers[column]
    return workload.surnames if column == "rare" else ()


def run_wrk(
    server: Server, column: str, number: int, workload: Workload, arguments: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns what the script prints. Raises BadAnswers."""
    seconds = workload.seconds if number else WARM_UP_SECONDS
    command = ["wrk", "--connections", "16", "--threads", "2", "--duration", f"{seconds}s", "--timeout", "10s"]
    command += [f"--header={key}: {value}" for key, value in COMPETITORS[server.name].headers.items()]
    command += ["--script", str(WRK_SCRIPT), f"http://127.0.0.1:{server.port}", "--"]
    command += [column, str(number), str(workload.books), *arguments]
    result = subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds + 60)
    response: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    if response["failed"] or not response["requests"]:
        raise BadResponses(
            f"{COLUMNS[column]}, {server.name}: {response['failed']} of {response['requests']} requests failed"
        )
    return response


def count_ticks(server_pid: int, postmaster_pid: int) -> tuple[int, int, int]:
    """The ticks of a server without its worker, of that worker, and of PostgreSQL."""
    all_processes = list_processes()
    workers = [process.pid for process in iter_process_tree(server_pid, all_processes) if is_worker(process.pid)]
    server, worker, postgresql = (sum_ticks(pids, all_processes) for pids in ([server_pid], workers, [postmaster_pid]))
    return server - worker, worker, postgresql


def is_worker(pid: int) -> bool:
    try:
        return WORKER_COMMAND in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def sum_ticks(roots: Iterable[int], all_processes: list[Process]) -> int:
    """The ticks of these processes and their descendants, each counted once."""
    trees = (iter_process_tree(root, all_processes) for root in roots)
    return sum({process.pid: process.ticks for tree in trees for process in tree}.values())


def list_processes() -> list[Process]:
    """Returns all processes of one moment: if one ended meanwhile, its time could count twice, or not at all.

    Raises UnstableProcesses.
    """
    processes = list(iter_processes())
    for _ in range(PROCESS_READINGS):
        previous, processes = processes, list(iter_processes())
        if {process.pid for process in previous} == {process.pid for process in processes}:
            return processes
    raise UnstableProcesses("measure on a quiet machine")


def iter_process_tree(root: int, all_processes: list[Process]) -> Iterator[Process]:
    for process in all_processes:
        if process.pid == root:
            yield process
        elif process.parent == root:
            yield from iter_process_tree(process.pid, all_processes)


def iter_processes() -> Iterator[Process]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # Fields follow the name, which is in brackets and may contain spaces.
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        # utime and stime, and cutime and cstime of its ended children: proc(5), fields 14 to 17.
        yield Process(int(path.parent.name), int(fields[1]), sum(int(ticks) for ticks in fields[11:15]))


def get_medians(measurements: Iterable[Measurement]) -> Measurement:
    """The median of each figure, separately."""
    return Measurement(*map(statistics.median, zip(*measurements, strict=True)))
