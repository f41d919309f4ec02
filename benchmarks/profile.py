"""Where a request's microseconds go, beside this machine's limits: `python -m benchmarks.profile` from the root of the
repository.
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

from benchmarks import competitors, databases, limits, load
from benchmarks.arguments import note, within
from benchmarks.competitors import OURS, ROOT
from benchmarks.layers import GET_100, GET_ONE, QUESTIONS, ROWS, Profile, Task
from benchmarks.limits import Limit
from benchmarks.load import Work
from tests.support.postgres import Cluster, throwaway_cluster

SECONDS_TO_PROFILE = 300
# How pgbench names what a statement had numbers for, or parameters.
NUMBERS = {'"id" = ': ":id", "LIMIT ": ":limit", "OFFSET ": ":skip"}

Profiles = Mapping[str, Profile]
"""By the titles of the questions."""


def main() -> None:
    options = arguments()
    load.require_wrk()
    # A plain kill must run the clean-up below too, or the servers would outlive us.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = {"shared_buffers": "256MB", "max_connections": "200", "track_activity_query_size": "64kB"}
    with throwaway_cluster(**settings) as cluster:
        note(f"seeding {options.books:,} books")
        databases.make_ours(cluster, options.books)
        profiles = profiled(cluster, options)
        reached = limits_reached(cluster, profiles, options)
    console = Console(width=120)
    console.print("\nµs of a request, by the clock but for the last two rows", spent(profiles), sep="\n")
    console.print("\nThe limits beside the library, 16 connections", beside(reached), sep="\n")


def arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--books", type=within(1000, 10_000_000), default=100_000, help="books in the database")
    parser.add_argument("--requests", type=within(10, 100_000), default=2000, help="of each kind, after a warm-up")
    parser.add_argument("--seconds", type=within(1, 60), default=4, help="for which anything is measured at most")
    return parser.parse_args()


def profiled(cluster: Cluster, options: Namespace) -> Profiles:
    note("measuring the layers")
    task = Task(options.books, options.requests, options.seconds, load.postmaster(cluster), environs())
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.layers"],
        cwd=ROOT,
        env=competitors.environment(cluster.url(OURS)),
        input=json.dumps(task._asdict()),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=SECONDS_TO_PROFILE,
    )
    return {title: Profile(*profile) for title, profile in json.loads(done.stdout).items()}


def environs() -> dict[str, dict[str, Any]]:
    with limits.granian("mirror") as server:
        return {method: environ(server.port, method) for method in ("GET", "PUT", "POST")}


def environ(port: int, method: str) -> dict[str, Any]:
    """What the server makes of a request."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    body = None if method == "GET" else "{}"
    connection.request(method, "/", body, {"Content-Type": "application/json"} if body else {})
    made: dict[str, Any] = json.load(connection.getresponse())
    connection.close()
    return made


def limits_reached(cluster: Cluster, profiles: Profiles, options: Namespace) -> dict[str, Limit]:
    work = Work(options.books, options.seconds, surnames=[], postmaster=load.postmaster(cluster))
    reached = {}
    for title in (GET_ONE, GET_100):
        note(f"pgbench: {title}")
        script = for_pgbench(profiles[title].statement, options.books)
        reached[f"PostgreSQL alone, {title} (pgbench)"] = limits.of_postgresql(cluster, OURS, script, options.seconds)
    note("granian: static bytes, and the library")
    with limits.granian("static") as server:
        reached["granian alone, static bytes (wrk)"] = limits.of_server(server, work)
    with competitors.started(OURS, cluster.url(OURS)) as server:
        reached[f"The library over granian, {GET_ONE} (wrk)"] = limits.of_server(server, work)
    return reached


def for_pgbench(statement: str, books: int) -> str:
    """A script that asks the same of other books."""
    # It takes a colon before a letter for a variable even in the format of a time, but not two.
    statement = re.sub(r"(?<!:):(?=[A-Za-z_])", "::", statement)
    for before, variable in NUMBERS.items():
        statement = re.sub(rf"({before})(?:\$\d+|\d+)", rf"\g<1>{variable}", statement)
    return f"\\set id random(1, {books})\n\\set limit 100\n\\set skip random(0, 400)\n{statement};\n"


def spent(profiles: Profiles) -> Table:
    made = Table("", *QUESTIONS, box=box.MARKDOWN)
    for layer in ROWS:
        made.add_row(layer, *(shown(profile.layers[layer]) for profile in profiles.values()))
    made.add_row("together", *(shown(sum(profile.layers.values())) for profile in profiles.values()))
    made.add_row("together, unmeasured", *(shown(profile.wall) for profile in profiles.values()))
    made.add_row("CPU of the library", *(shown(profile.cpu) for profile in profiles.values()))
    made.add_row("CPU of PostgreSQL", *(shown(profile.postgresql) for profile in profiles.values()))
    return made


def shown(microseconds: float) -> str:
    return f"{microseconds:,.0f}" if microseconds else "·"


def beside(reached: Mapping[str, Limit]) -> Table:
    made = Table("", "per second", "µs CPU each", box=box.MARKDOWN)
    for title, limit in reached.items():
        made.add_row(title, f"{limit.per_second:,.0f}", f"{limit.cpu_us:,.0f}")
    return made


if __name__ == "__main__":
    main()
