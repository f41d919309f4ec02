"""What no answer can be faster than on this machine: PostgreSQL alone, and the server with nothing behind it."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from benchmarks import competitors, load
from benchmarks.competitors import ROOT, Server
from benchmarks.load import Work
from library_site.management.commands import serve
from tests.support.postgres import Cluster, binary

WORKERS, THREADS = 2, 8
CLIENTS = ("--client", "16", "--jobs", "2")
TRANSACTIONS = re.compile(r"actually processed: (\d+)")
PER_SECOND = re.compile(r"tps = ([\d.]+)")


class Limit(NamedTuple):
    """`cpu_us` is what one costs those who answer."""

    per_second: float
    cpu_us: float


def of_postgresql(cluster: Cluster, database: str, script: str, seconds: int) -> Limit:
    """Of a script that pgbench carries out (PostgreSQL, pgbench), its statements prepared."""
    postmaster = load.postmaster(cluster)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        place = ["--host", str(cluster.sockets), "--username", "postgres", "--file", file.name, database]
        call = [binary("pgbench"), "--no-vacuum", "--protocol", "prepared", *CLIENTS, "--time", str(seconds), *place]
        before = load.cpu_seconds(postmaster)
        done = subprocess.run(call, check=True, capture_output=True, text=True, timeout=seconds + 60)
        cpu = load.cpu_seconds(postmaster) - before
    return Limit(figure(PER_SECOND, done.stdout), cpu / figure(TRANSACTIONS, done.stdout) * 1e6)


def figure(pattern: re.Pattern[str], said: str) -> float:
    found = pattern.search(said)
    if not found:
        raise ValueError(f"pgbench says nothing of {pattern.pattern!r}: {said}")
    return float(found[1])


def of_server(server: Server, work: Work) -> Limit:
    """Of books asked for one by one, or whatever else the server answers to that."""
    load.measure(server, "get", 0, work)
    measured = load.measure(server, "get", 1, work)
    return Limit(measured.per_second, measured.cpu_us)


@contextmanager
def granian(application: str) -> Iterator[Server]:
    """Serves one of `benchmarks.bare` as the library is served."""
    port = competitors.free_port()
    command = [*serve.build_granian_command("127.0.0.1", port, WORKERS, THREADS)[:-1], f"benchmarks.bare:{application}"]
    variables = competitors.environment("") | {"PYTHONPATH": str(ROOT)}
    with competitors.running(command, variables) as process:
        competitors.wait_until_it_answers(process, application, lambda: competitors.fetch(port, "/"))
        yield Server(application, port, process.pid)
