"""Measures how fast events reach their endpoints: `python -m benchmarks.webhooks` from the root of the repository."""

import statistics
from argparse import Namespace

from rich.console import Console
from rich.table import Table

from benchmarks import competitors
from benchmarks.competitors import Server
from benchmarks.deliveries import LIBRARIES_BY_DATABASE, start_library_and_receiver, wait_until
from benchmarks.support import load
from benchmarks.support.arguments import Names, Number, note, parse_options
from benchmarks.support.load import COLUMNS, Workload

ENDPOINT_COUNT = 50
WORKER_COUNTS = (1, 2)
WRITE_COLUMNS = ("put-title", "post")
BOOK_COUNT = 10_000
# More deliveries than a worker can send while requests are measured.
BACKLOG_DELIVERIES = 100_000
UNFINISHED_CONDITION = (
    "state <> 'delivered' AND endpoint_id IN (SELECT id FROM webhooks_endpoint WHERE url LIKE '%/well/%')"
)
# The pauses are long enough for a worker to be idle again. Prints when each event was committed.
PUBLISH_SINGLE_EVENTS_CODE = """
import random, time
from django.db import transaction
from django.utils import timezone
from books.writing.events import BOOK_CREATED
from webhooks.models import Event
from webhooks.outbox import EventData, publish
for n in range({events}):
    time.sleep(random.uniform(0.3, 0.6))
    with transaction.atomic():
        publish([EventData(BOOK_CREATED, n, {{"book": {{"id": n}}}})], timezone.now())
    committed_at = time.time()
    print(committed_at, Event.objects.latest("id").uuid)
"""


def main() -> None:
    options = parse_options(
        "benchmarks.webhooks",
        __doc__,
        databases=Names(LIBRARIES_BY_DATABASE),
        deliveries=Number(1000, 1_000_000, 20_000, "of each measurement"),
        singles=Number(10, 10_000, 200, "events to time one by one"),
        seconds=Number(1, 600, 4, "length of one measurement of requests"),
    )
    load.require_wrk()
    if "PostgreSQL" in options.databases:
        load.require_postgres()
    table = Table("", *options.databases)
    for title, rows in (
        *(
            (f"Deliveries/s, {workers} worker{'s' * (workers > 1)}", measure_speeds(options, workers))
            for workers in WORKER_COUNTS
        ),
        ("Commit to first byte, p50 / p99 in ms", measure_latencies(options)),
        ("One of fifty hangs: the others take so many times as long", measure_ratios(options)),
    ):
        table.add_row(title, *rows)
    console = Console(width=120)
    console.print(f"\n{options.deliveries:,} deliveries to {ENDPOINT_COUNT} endpoints", table, sep="\n")
    console.print("\nRequests/s, and p50 / p99 in ms", build_writes_table(options), sep="\n")


def measure_speeds(options: Namespace, workers: int) -> list[str]:
    paths = [f"well/{number}" for number in range(ENDPOINT_COUNT)]
    return [f"{measure_speed(options, database, paths, workers):,.0f}" for database in options.databases]


def measure_speed(options: Namespace, database: str, paths: list[str], workers: int) -> float:
    seconds = measure_seconds(options, database, paths, workers)
    note(f"{database}, {workers} at work: {options.deliveries / seconds:,.0f} deliveries/s")
    return float(options.deliveries / seconds)


def measure_seconds(options: Namespace, database: str, paths: list[str], workers: int = 1) -> float:
    """The seconds from the first to the last request to the endpoints that answer correctly."""
    with start_library_and_receiver(database, *paths) as (library, receiver):
        library.publish(options.deliveries // ENDPOINT_COUNT)
        with library.run_workers(workers):
            wait_until(lambda: library.count_rows(UNFINISHED_CONDITION) == 0, pause=0.5)
        requests = receiver.list_requests()
        times = [request.received_at for request in requests if request.path.startswith("/well")]
    return max(times) - min(times)


def measure_latencies(options: Namespace) -> list[str]:
    return [measure_latency(database, options.singles) for database in options.databases]


def measure_latency(database: str, events: int) -> str:
    with start_library_and_receiver(database, "well/0") as (library, receiver), library.run_workers():
        library.publish(1)
        wait_until(lambda: receiver.count_requests() == 1)
        lines = library.run_code(PUBLISH_SINGLE_EVENTS_CODE.format(events=events)).splitlines()
        commit_times = {event: float(committed_at) for committed_at, event in map(str.split, lines)}
        wait_until(lambda: receiver.count_requests() == events + 1)
        requests = [request for request in receiver.list_requests() if request.event in commit_times]
        latencies = [(request.received_at - commit_times[request.event]) * 1000 for request in requests]
    percentiles = statistics.quantiles(latencies, n=100)
    cell = f"{percentiles[49]:.0f} / {percentiles[98]:.0f}"
    note(f"{database}, commit to first byte: {cell} ms")
    return cell


def measure_ratios(options: Namespace) -> list[str]:
    return [measure_ratio(options, database) for database in options.databases]


def measure_ratio(options: Namespace, database: str) -> str:
    others = [f"well/{number}" for number in range(1, ENDPOINT_COUNT)]
    normal_seconds, hanging_seconds = (measure_seconds(options, database, [path, *others]) for path in ("fine", "hang"))
    note(f"{database}, one hangs: {hanging_seconds:.1f} s beside {normal_seconds:.1f} s")
    return f"{hanging_seconds / normal_seconds:.2f}"


def build_writes_table(options: Namespace) -> Table:
    """The speed of changes of books without endpoints, with endpoints, and with a worker that is busy all the time."""
    table = Table("", *(f"{database}, {COLUMNS[column]}" for database in options.databases for column in WRITE_COLUMNS))
    for title, endpoints, workers in (
        ("No endpoint", 0, 0),
        (f"{ENDPOINT_COUNT} endpoints", ENDPOINT_COUNT, 0),
        (f"{ENDPOINT_COUNT} endpoints, a busy worker", ENDPOINT_COUNT, 1),
    ):
        cells = [measure_writes(options, database, endpoints, workers) for database in options.databases]
        table.add_row(title, *(cell for row in cells for cell in row))
    return table


def measure_writes(options: Namespace, database: str, endpoints: int, workers: int) -> list[str]:
    paths = [f"well/{number}" for number in range(endpoints)]
    with start_library_and_receiver(database, *paths) as (library, _):
        library.run_command("seed_books", "--count", str(BOOK_COUNT))
        if workers:
            library.publish(BACKLOG_DELIVERIES // ENDPOINT_COUNT)
        settings = library.environment | {"LIBRARY_ACCESS": "open"}
        with competitors.start_library(library.url, **settings) as server, library.run_workers(workers):
            return [
                measure_column(options, server, f"{database}, {workers} at work", column) for column in WRITE_COLUMNS
            ]


def measure_column(options: Namespace, server: Server, title: str, column: str) -> str:
    workload = Workload(BOOK_COUNT, options.seconds, surnames=[], postmaster_pid=0)
    _, answer = (load.run_wrk(server, column, number, workload) for number in (0, 1))
    per_second, times = answer["requests"] / answer["seconds"], f"{answer['p50']:.1f} / {answer['p99']:.1f}"
    note(f"{title}, {COLUMNS[column]}: {per_second:,.0f}/s, {times} ms")
    return f"{per_second:,.0f}\n{times}"


if __name__ == "__main__":
    main()
