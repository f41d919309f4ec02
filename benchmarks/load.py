"""What one measurement is: wrk for the requests, /proc for the CPU time they cost."""

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.competitors import Server
from tests.support.postgres import Cluster

SCRIPT = Path(__file__).parent / "wrk" / "books.lua"
COLUMNS = {
    "get": "get one",
    "list100": "list 100",
    "list10": "list 10",
    "put": "PUT",
    "post": "POST",
    "rare": "rare filter",
    "common": "common filter",
}
# On a larger database.
FILTERED = {"rare", "common"}
WARM_UP_SECONDS = 1
TICKS = os.sysconf("SC_CLK_TCK")


class BadAnswers(Exception):
    """Some requests failed, so their speed says nothing."""


class Measurement(NamedTuple):
    """`cpu_us` is what a request costs server and PostgreSQL together."""

    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_us: float

    def summary(self) -> str:
        return f"{self.per_second:,.0f}/s, p99 {self.p99_ms:.1f} ms, {self.cpu_us:,.0f} µs CPU"


@dataclass(frozen=True)
class Work:
    """What stays the same over a run."""

    books: int
    seconds: int
    surnames: list[str]
    postmaster: int


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    ticks: int


def require_wrk() -> None:
    if not shutil.which("wrk"):
        sys.exit("wrk is missing, and nothing is measured without it: apt-get install wrk")


def postmaster(cluster: Cluster) -> int:
    """PostgreSQL writes its process id into the lock file beside its socket."""
    return int((cluster.sockets / ".s.PGSQL.5432.lock").read_text().split()[0])


def measure(server: Server, column: str, number: int, work: Work) -> Measurement:
    """`number` is the round, 0 to warm up; it keeps new ISBNs apart and gives all competitors the same requests."""
    before = cpu_seconds(server.pid, work.postmaster)
    answers = wrk(server.port, column, number, work)
    cpu = cpu_seconds(server.pid, work.postmaster) - before
    requests, failed = answers["requests"], answers["failed"]
    if failed or not requests:
        raise BadAnswers(f"{COLUMNS[column]}, {server.name}: {failed} of {requests} requests failed")
    return Measurement(requests / answers["seconds"], answers["p50"], answers["p99"], cpu / requests * 1e6)


def wrk(port: int, column: str, number: int, work: Work) -> dict[str, Any]:
    seconds = work.seconds if number else WARM_UP_SECONDS
    call = ["wrk", "--connections", "16", "--threads", "2", "--duration", f"{seconds}s", "--timeout", "10s"]
    script = ["--script", str(SCRIPT), f"http://127.0.0.1:{port}", "--", column, str(number), str(work.books)]
    done = subprocess.run(
        [*call, *script, ",".join(work.surnames)], check=True, capture_output=True, text=True, timeout=seconds + 60
    )
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


def cpu_seconds(*roots: int) -> float:
    """User and system time of these processes and all below them, those that have ended included."""
    everyone = list(processes())
    return sum(process.ticks for root in roots for process in below(root, everyone)) / TICKS


def memory(root: int) -> float:
    """MiB of the largest process from here on down; what it shares with others counts by parts (PSS)."""
    return max(map(proportional_kib, (process.pid for process in below(root, list(processes()))))) / 1024


def proportional_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def below(root: int, everyone: list[Process]) -> Iterator[Process]:
    for process in everyone:
        if process.pid == root:
            yield process
        elif process.parent == root:
            yield from below(process.pid, everyone)


def processes() -> Iterator[Process]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name before it, in brackets, may hold spaces.
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        # utime, stime, and cutime, cstime of the children it has waited for: proc(5), fields 14 to 17.
        yield Process(int(stat.parent.name), int(fields[1]), sum(int(ticks) for ticks in fields[11:15]))


def median(measured: Iterable[Measurement]) -> Measurement:
    """Of each figure on its own."""
    return Measurement(*map(statistics.median, zip(*measured, strict=True)))
