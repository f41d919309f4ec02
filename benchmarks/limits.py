"""Measures the limits of this machine: PostgreSQL alone, and the server with an application that does nothing."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from benchmarks import competitors
from benchmarks.competitors import ROOT, Server
from benchmarks.support import load
from benchmarks.support.load import Workload
from library_site.granian_command import build_granian_command
from tests.support.postgres import Cluster, find_binary

# Processes, threads, and the seconds that they have to stop.
WORKER_COUNT, THREAD_COUNT, STOP_TIMEOUT = 2, 8, 2
CLIENT_OPTIONS = ("--client", "16", "--jobs", "2")
TRANSACTIONS_PATTERN = re.compile(r"actually processed: (\d+)")
PER_SECOND_PATTERN = re.compile(r"tps = ([\d.]+)")


class Limit(NamedTuple):
    """`cpu_us` is the CPU time of one transaction or request, in µs."""

    per_second: float
    cpu_us: float


def measure_postgresql(cluster: Cluster, database: str, script: str, seconds: int) -> Limit:
    """Measures a script that pgbench runs with prepared statements."""
    postmaster_pid = load.get_postmaster_pid(cluster)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        options = ["--host", str(cluster.sockets), "--username", "postgres", "--file", file.name, database]
        command = [
            find_binary("pgbench"),
            "--no-vacuum",
            "--protocol",
            "prepared",
            *CLIENT_OPTIONS,
            "--time",
            str(seconds),
            *options,
        ]
        cpu_before = load.get_cpu_seconds(postmaster_pid)
        result = subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds + 60)
        cpu = load.get_cpu_seconds(postmaster_pid) - cpu_before
    return Limit(
        parse_figure(PER_SECOND_PATTERN, result.stdout), cpu / parse_figure(TRANSACTIONS_PATTERN, result.stdout) * 1e6
    )


def parse_figure(pattern: re.Pattern[str], output: str) -> float:
    match = pattern.search(output)
    if not match:
        raise ValueError(f"pgbench prints no {pattern.pattern!r}: {output}")
    return float(match[1])


def measure_server(server: Server, workload: Workload) -> Limit:
    """Measures requests for single books, whatever the server answers to them."""
    load.measure(server, "get", 0, workload)
    measurement = load.measure(server, "get", 1, workload)
    return Limit(measurement.per_second, measurement.cpu_us)


@contextmanager
def start_granian(application: str) -> Iterator[Server]:
    """Serves an application of `benchmarks.bare` in the way the library is served."""
    port = competitors.find_free_port()
    command = [
        *build_granian_command("127.0.0.1", port, WORKER_COUNT, THREAD_COUNT, STOP_TIMEOUT),
        f"benchmarks.bare:{application}",
    ]
    variables = competitors.build_environment("") | {"PYTHONPATH": str(ROOT)}
    with competitors.run_process(command, variables) as process:
        competitors.wait_for_answer(process, application, lambda: competitors.fetch_json(port, "/"))
        yield Server(application, port, process.pid)
