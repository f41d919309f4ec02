"""Measures the time of a request by layer, and the limits of this machine: `python -m benchmarks.profile` from the root
of the repository.
"""

import json
import re
import signal
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import competitors, limits
from benchmarks.competitors import OURS, ROOT
from benchmarks.layers import GET_100, GET_ONE, QUESTIONS, ROW_TITLES, Profile, Task
from benchmarks.limits import Limit
from benchmarks.support import databases, load
from benchmarks.support.arguments import make_integer_parser, note
from benchmarks.support.load import Workload
from tests.support.postgres import Cluster, start_cluster

PROFILE_TIMEOUT = 300
# pgbench's variables, by the text before the number or parameter that they replace.
PGBENCH_VARIABLES = {'"id" = ': ":id", "LIMIT ": ":limit", "OFFSET ": ":skip"}

Profiles = Mapping[str, Profile]
"""Profiles by the titles of the questions."""


def main() -> None:
    options = parse_arguments()
    load.require_wrk()
    load.require_postgres()
    # SIGTERM must run the clean-up below too, otherwise the servers go on running.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = {"shared_buffers": "256MB", "max_connections": "200", "track_activity_query_size": "64kB"}
    with start_cluster(**settings) as cluster:
        note(f"seeding {options.books:,} books")
        databases.create_library_database(cluster, options.books)
        profiles = profile_layers(cluster, options)
        machine_limits = measure_limits(cluster, profiles, options)
    console = Console(width=120)
    console.print("\nµs of a request, by the clock but for the last two rows", build_layers_table(profiles), sep="\n")
    console.print("\nThe limits beside the library, 16 connections", build_limits_table(machine_limits), sep="\n")


def parse_arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument(
        "--books", type=make_integer_parser(1000, 10_000_000), default=100_000, help="books in the database"
    )
    parser.add_argument(
        "--requests", type=make_integer_parser(10, 100_000), default=2000, help="of each kind, after a warm-up"
    )
    parser.add_argument(
        "--seconds", type=make_integer_parser(1, 60), default=4, help="for which anything is measured at most"
    )
    return parser.parse_args()


def profile_layers(cluster: Cluster, options: Namespace) -> Profiles:
    note("measuring the layers")
    task = Task(options.books, options.requests, options.seconds, load.get_postmaster_pid(cluster), fetch_environs())
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.layers"],
        cwd=ROOT,
        env=competitors.build_environment(cluster.url(OURS)),
        input=json.dumps(task._asdict()),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=PROFILE_TIMEOUT,
    )
    return {title: Profile(*profile) for title, profile in json.loads(result.stdout).items()}


def fetch_environs() -> dict[str, dict[str, Any]]:
    with limits.start_granian("echo_environ") as server:
        return {method: fetch_environ(server.port, method) for method in ("GET", "PUT", "POST")}


def fetch_environ(port: int, method: str) -> dict[str, Any]:
    """The environ that the server builds for a request."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    body = None if method == "GET" else "{}"
    connection.request(method, "/", body, {"Content-Type": "application/json"} if body else {})
    environ: dict[str, Any] = json.load(connection.getresponse())
    connection.close()
    return environ


def measure_limits(cluster: Cluster, profiles: Profiles, options: Namespace) -> dict[str, Limit]:
    workload = Workload(options.books, options.seconds, surnames=[], postmaster_pid=load.get_postmaster_pid(cluster))
    machine_limits = {}
    for title in (GET_ONE, GET_100):
        note(f"pgbench: {title}")
        script = build_pgbench_script(profiles[title].statement, options.books)
        machine_limits[f"PostgreSQL alone, {title} (pgbench)"] = limits.measure_postgresql(
            cluster, OURS, script, options.seconds
        )
    note("granian: static bytes, and the library")
    with limits.start_granian("serve_static") as server:
        machine_limits["granian alone, static bytes (wrk)"] = limits.measure_server(server, workload)
    with competitors.start_library(cluster.url(OURS)) as server:
        machine_limits[f"The library over granian, {GET_ONE} (wrk)"] = limits.measure_server(server, workload)
    return machine_limits


def build_pgbench_script(statement: str, books: int) -> str:
    """A pgbench script that runs the statement for random books."""
    # pgbench takes a colon before a letter for a variable, even in the format of a time; two colons are no variable.
    statement = re.sub(r"(?<!:):(?=[A-Za-z_])", "::", statement)
    for prefix, variable in PGBENCH_VARIABLES.items():
        statement = re.sub(rf"({prefix})(?:\$\d+|\d+)", rf"\g<1>{variable}", statement)
    return f"\\set id random(1, {books})\n\\set limit 100\n\\set skip random(0, 400)\n{statement};\n"


def build_layers_table(profiles: Profiles) -> Table:
    table = Table("", *QUESTIONS, box=box.MARKDOWN)
    for layer in ROW_TITLES:
        table.add_row(layer, *(format_microseconds(profile.layers[layer]) for profile in profiles.values()))
    table.add_row("together", *(format_microseconds(sum(profile.layers.values())) for profile in profiles.values()))
    table.add_row("together, unmeasured", *(format_microseconds(profile.wall) for profile in profiles.values()))
    table.add_row("CPU of the library", *(format_microseconds(profile.cpu) for profile in profiles.values()))
    table.add_row("CPU of PostgreSQL", *(format_microseconds(profile.postgresql) for profile in profiles.values()))
    return table


def format_microseconds(microseconds: float) -> str:
    return f"{microseconds:,.0f}" if microseconds else "·"


def build_limits_table(machine_limits: Mapping[str, Limit]) -> Table:
    table = Table("", "per second", "µs CPU each", box=box.MARKDOWN)
    for title, limit in machine_limits.items():
        table.add_row(title, f"{limit.per_second:,.0f}", f"{limit.cpu_us:,.0f}")
    return table


if __name__ == "__main__":
    main()
