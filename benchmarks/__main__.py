"""The service beside its peers: `python -m benchmarks` from the root of the repository."""

import signal
import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from random import sample

from benchmarks import competitors, databases, load, report
from benchmarks.arguments import among, note, within
from benchmarks.competitors import COMPETITORS, Server
from benchmarks.load import COLUMNS, FILTERED, Measurement, Work
from tests.support.postgres import throwaway_cluster


def main() -> int:
    options = arguments()
    load.require_wrk()
    competitors.install_peers()
    # A plain kill must run the clean-up below too, or the servers would outlive us.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    whole = measured(options, options.books, [column for column in options.columns if column not in FILTERED])
    filtered = measured(options, options.filtered, [column for column in options.columns if column in FILTERED])
    books = f"{options.books:,} books, {options.filtered:,} to filter"
    missed = report.show({**whole, **filtered}, options.only, options.columns, books)
    return 1 if options.goal and missed else 0


def measured(options: Namespace, books: int, columns: list[str]) -> report.Results:
    """Each competitor on a database of so many books."""
    if not columns:
        return {}
    with throwaway_cluster(shared_buffers="256MB", max_connections="200") as cluster, ExitStack() as servers:
        note(f"filling the databases with {books:,} books each")
        databases.fill(cluster, options.only, books)
        running = [servers.enter_context(competitors.started(name, cluster.url(name))) for name in options.only]
        work = Work(books, options.seconds, databases.rare_surnames(cluster), load.postmaster(cluster))
        return rounds(running, columns, options.rounds, work)


def rounds(running: list[Server], columns: list[str], count: int, work: Work) -> report.Results:
    """Everyone takes turns within each column, so that whatever disturbs the machine disturbs all alike."""
    samples: dict[tuple[str, str], list[Measurement]] = {(s.name, c): [] for s in running for c in columns}
    for number in range(count + 1):
        for column in columns:
            for server in sample(running, len(running)):
                measured = load.measure(server, column, number, work)
                note(f"{f'round {number}' if number else 'warm-up'} · {column} · {server.name}: {measured.summary()}")
                if number:
                    samples[server.name, column].append(measured)
    return {cell: load.median(measured) for cell, measured in samples.items()}


def arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=within(1, 98), default=3, help="measured rounds, of which the median counts")
    parser.add_argument("--seconds", type=within(1, 600), default=4, help="length of one measurement")
    parser.add_argument("--books", type=within(1000, 10_000_000), default=100_000, help="books in each database")
    parser.add_argument("--filtered", type=within(1000, 10_000_000), default=1_000_000, help="books for the filters")
    parser.add_argument("--only", type=among(COMPETITORS), default=list(COMPETITORS), help=", ".join(COMPETITORS))
    parser.add_argument("--columns", type=among(COLUMNS), default=list(COLUMNS), help=", ".join(COLUMNS))
    parser.add_argument("--goal", action="store_true", help="fails where a goal is missed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
