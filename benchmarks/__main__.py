"""Compares the service with its peers: `python -m benchmarks` from the root of the repository."""

import sys
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from random import sample

from benchmarks import competitors, report
from benchmarks.competitors import COMPETITORS, OURS, Server
from benchmarks.support import databases, load
from benchmarks.support.arguments import Names, Number, note, parse_options
from benchmarks.support.credentials import create_credentials
from benchmarks.support.load import (
    COLUMNS,
    FILTER_COLUMNS,
    Measurement,
    Workload,
)
from tests.support.postgres import start_cluster


def main() -> int:
    options = parse_options(
        "benchmarks",
        __doc__,
        rounds=Number(1, 98, 3, "measured rounds, of which the median counts"),
        seconds=Number(1, 600, 3, "length of one measurement"),
        books=Number(1000, 10_000_000, 100_000, "books in each database"),
        filtered=Number(1000, 10_000_000, 1_000_000, "books for the filters"),
        only=Names(COMPETITORS),
        columns=Names(COLUMNS),
        goal="fails where a goal is missed",
    )
    load.require_wrk()
    load.require_postgres()
    competitors.install_python_peers()
    missing = [name for name in options.only if not competitors.is_installed(name)]
    report_missing(missing)
    options.only = [name for name in options.only if name not in missing]
    if not options.only:
        sys.exit("Nothing is left to measure.")
    filters = [column for column in options.columns if column in FILTER_COLUMNS]
    others = [column for column in options.columns if column not in FILTER_COLUMNS]
    results = {
        **measure_columns(options, others, options.books),
        **measure_columns(options, filters, options.filtered),
    }
    books = f"{options.books:,} books, {options.filtered:,} to filter"
    missed_goals = report.print_report(results, options.only, options.columns, books)
    report_missing(missing)
    return 1 if options.goal and missed_goals else 0


def report_missing(names: list[str]) -> None:
    for name in names:
        note(f"\n!!! {COMPETITORS[name].title} is NOT measured: `make bench` installs it where there is npm. !!!")


def measure_columns(options: Namespace, columns: list[str], books: int) -> report.Results:
    names = [name for name in options.only if any(load.takes_part(name, column) for column in columns)]
    if not names:
        return {}
    with start_servers(names, books, options.seconds) as (servers, workload):
        return run_rounds(servers, columns, options.rounds, workload)


@contextmanager
def start_servers(names: Sequence[str], books: int, seconds: int) -> Iterator[tuple[list[Server], Workload]]:
    """Starts each competitor on a database with this number of books."""
    with start_cluster(shared_buffers="256MB", max_connections="200") as cluster, ExitStack() as stack:
        note(f"filling the databases with {books:,} books each")
        databases.create_databases(cluster, names, books)
        servers = [stack.enter_context(competitors.start_competitor(name, cluster.url(name))) for name in names]
        surnames, postmaster_pid = databases.list_rare_surnames(cluster), load.get_postmaster_pid(cluster)
        ports = {server.name: server.port for server in servers}
        headers = create_credentials(cluster.url(OURS), ports[OURS]) if OURS in ports else {}
        yield servers, Workload(books, seconds, surnames, postmaster_pid, headers)


def run_rounds(servers: list[Server], columns: list[str], count: int, workload: Workload) -> report.Results:
    """The servers take turns within each column, so that a disturbance of the machine affects all of them.

    Round 0 is a warm-up, which does not count.
    """
    samples: dict[tuple[str, str], list[Measurement]] = defaultdict(list)
    for number in range(count + 1):
        for column in columns:
            participants = [server for server in servers if load.takes_part(server.name, column)]
            for server in sample(participants, len(participants)):
                measurement = load.measure(server, column, number, workload)
                title = f"round {number}" if number else "warm-up"
                note(f"{title} · {column} · {server.name}: {measurement.summarize()}")
                if number:
                    samples[server.name, column].append(measurement)
    return {cell: load.get_medians(measurements) for cell, measurements in samples.items()}


if __name__ == "__main__":
    sys.exit(main())
