"""Compares the service with its peers: `python -m benchmarks` from the root of the repository."""

import signal
import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from random import sample

from benchmarks import competitors, report
from benchmarks.competitors import COMPETITORS, Server
from benchmarks.support import databases, load
from benchmarks.support.arguments import make_integer_parser, make_list_parser, note
from benchmarks.support.load import COLUMNS, FILTER_COLUMNS, Measurement, Workload
from tests.support.postgres import start_cluster


def main() -> int:
    options = parse_arguments()
    load.require_wrk()
    load.require_postgres()
    competitors.install_peers()
    # SIGTERM must run the clean-up below too, otherwise the servers go on running.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    plain_columns = [column for column in options.columns if column not in FILTER_COLUMNS]
    filter_columns = [column for column in options.columns if column in FILTER_COLUMNS]
    plain_results = measure_columns(options, options.books, plain_columns)
    filter_results = measure_columns(options, options.filtered, filter_columns)
    books = f"{options.books:,} books, {options.filtered:,} to filter"
    missed_goals = report.print_report({**plain_results, **filter_results}, options.only, options.columns, books)
    return 1 if options.goal and missed_goals else 0


def measure_columns(options: Namespace, books: int, columns: list[str]) -> report.Results:
    """Measures each competitor on a database with this number of books."""
    if not columns:
        return {}
    with start_cluster(shared_buffers="256MB", max_connections="200") as cluster, ExitStack() as stack:
        note(f"filling the databases with {books:,} books each")
        databases.create_databases(cluster, options.only, books)
        servers = [stack.enter_context(competitors.start_competitor(name, cluster.url(name))) for name in options.only]
        surnames, postmaster_pid = databases.list_rare_surnames(cluster), load.get_postmaster_pid(cluster)
        workload = Workload(books, options.seconds, surnames, postmaster_pid)
        return run_rounds(servers, columns, options.rounds, workload)


def run_rounds(servers: list[Server], columns: list[str], count: int, workload: Workload) -> report.Results:
    """The servers take turns within each column, so that a disturbance of the machine affects all of them.

    Round 0 is a warm-up, which does not count.
    """
    samples: dict[tuple[str, str], list[Measurement]] = {
        (server.name, column): [] for server in servers for column in columns
    }
    for number in range(count + 1):
        for column in columns:
            for server in sample(servers, len(servers)):
                measurement = load.measure(server, column, number, workload)
                title = f"round {number}" if number else "warm-up"
                note(f"{title} · {column} · {server.name}: {measurement.summarize()}")
                if number:
                    samples[server.name, column].append(measurement)
    return {cell: load.get_medians(measurements) for cell, measurements in samples.items()}


def parse_arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--rounds", type=make_integer_parser(1, 98), default=3, help="measured rounds, of which the median counts"
    )
    parser.add_argument("--seconds", type=make_integer_parser(1, 600), default=4, help="length of one measurement")
    parser.add_argument(
        "--books", type=make_integer_parser(1000, 10_000_000), default=100_000, help="books in each database"
    )
    parser.add_argument(
        "--filtered", type=make_integer_parser(1000, 10_000_000), default=1_000_000, help="books for the filters"
    )
    parser.add_argument(
        "--only", type=make_list_parser(COMPETITORS), default=list(COMPETITORS), help=", ".join(COMPETITORS)
    )
    parser.add_argument("--columns", type=make_list_parser(COLUMNS), default=list(COLUMNS), help=", ".join(COLUMNS))
    parser.add_argument("--goal", action="store_true", help="fails where a goal is missed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
