"""How fast events reach their endpoints: `python -m benchmarks.webhooks` from the root of the repository."""

import signal
import statistics
from argparse import ArgumentParser, Namespace

from rich.console import Console
from rich.table import Table

from benchmarks import competitors, load
from benchmarks.arguments import among, note, within
from benchmarks.competitors import OURS, Server
from benchmarks.deliveries import DATABASES, listening, until
from benchmarks.load import COLUMNS, Work

ENDPOINTS = 50
WORKERS = (1, 2)
WRITES = ("put", "post")
BOOKS = 10_000
# More deliveries than a worker comes to while requests are measured.
BACKLOG = 100_000
UNFINISHED = "state <> 'delivered' AND endpoint_id IN (SELECT id FROM webhooks_endpoint WHERE url LIKE '%/well/%')"
# Far enough apart for a worker to be idle again; says when each was committed.
SINGLE_EVENTS = """
import random, time
from django.db import transaction
from django.utils import timezone
from books.events import CREATED
from webhooks.models import Event
from webhooks.outbox import Announcement, publish
for n in range({events}):
    time.sleep(random.uniform(0.3, 0.6))
    with transaction.atomic():
        publish([Announcement(CREATED, n, {{"book": {{"id": n}}}})], timezone.now())
    at = time.time()
    print(at, Event.objects.latest("id").uuid)
"""


def main() -> None:
    options = arguments()
    load.require_wrk()
    # A plain kill must run the clean-up below too, or the workers would outlive us.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    made = Table("", *options.databases)
    for title, rows in (
        *((f"Deliveries/s, {workers} worker{'s' * (workers > 1)}", speeds(options, workers)) for workers in WORKERS),
        ("Commit to first byte, p50 / p99 in ms", latencies(options)),
        ("One of fifty hangs: the others take so many times as long", ratios(options)),
    ):
        made.add_row(title, *rows)
    console = Console(width=120)
    console.print(f"\n{options.deliveries:,} deliveries to {ENDPOINTS} endpoints", made, sep="\n")
    console.print("\nRequests/s, and p50 / p99 in ms", meanwhile(options), sep="\n")


def arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.webhooks", description=__doc__)
    parser.add_argument("--databases", type=among(DATABASES), default=list(DATABASES), help=", ".join(DATABASES))
    parser.add_argument("--deliveries", type=within(1000, 1_000_000), default=20_000, help="of each measurement")
    parser.add_argument("--singles", type=within(10, 10_000), default=200, help="events to time one by one")
    parser.add_argument("--seconds", type=within(1, 600), default=4, help="length of one measurement of requests")
    return parser.parse_args()


def speeds(options: Namespace, workers: int) -> list[str]:
    paths = [f"well/{number}" for number in range(ENDPOINTS)]
    return [f"{per_second(options, database, paths, workers):,.0f}" for database in options.databases]


def per_second(options: Namespace, database: str, paths: list[str], workers: int) -> float:
    seconds = seconds_to_send(options, database, paths, workers)
    note(f"{database}, {workers} at work: {options.deliveries / seconds:,.0f} deliveries/s")
    return float(options.deliveries / seconds)


def seconds_to_send(options: Namespace, database: str, paths: list[str], workers: int = 1) -> float:
    """From the first request to the last of those to endpoints that are well."""
    with listening(database, *paths) as (library, receiver):
        library.publish(options.deliveries // ENDPOINTS)
        with library.working(workers):
            until(lambda: library.count(UNFINISHED) == 0, pause=0.5)
        times = [one.at for one in receiver.sent() if one.path.startswith("/well")]
    return max(times) - min(times)


def latencies(options: Namespace) -> list[str]:
    return [latency(database, options.singles) for database in options.databases]


def latency(database: str, events: int) -> str:
    with listening(database, "well/0") as (library, receiver), library.working():
        library.publish(1)
        until(lambda: receiver.count() == 1)
        said = library.shell(SINGLE_EVENTS.format(events=events)).splitlines()
        committed = {event: float(at) for at, event in map(str.split, said)}
        until(lambda: receiver.count() == events + 1)
        times = [(one.at - committed[one.event]) * 1000 for one in receiver.sent() if one.event in committed]
    percentiles = statistics.quantiles(times, n=100)
    shown = f"{percentiles[49]:.0f} / {percentiles[98]:.0f}"
    note(f"{database}, commit to first byte: {shown} ms")
    return shown


def ratios(options: Namespace) -> list[str]:
    return [ratio(options, database) for database in options.databases]


def ratio(options: Namespace, database: str) -> str:
    others = [f"well/{number}" for number in range(1, ENDPOINTS)]
    alone, beside = (seconds_to_send(options, database, [first, *others]) for first in ("fine", "hang"))
    shown = f"{beside / alone:.2f}"
    note(f"{database}, one hangs: {beside:.1f} s beside {alone:.1f} s")
    return shown


def meanwhile(options: Namespace) -> Table:
    """What those who change books notice of those who listen, and of a worker that has more to do than it can."""
    made = Table("", *(f"{database}, {COLUMNS[column]}" for database in options.databases for column in WRITES))
    for title, endpoints, workers in (
        ("Nobody listens", 0, 0),
        (f"{ENDPOINTS} endpoints", ENDPOINTS, 0),
        (f"{ENDPOINTS} endpoints, a busy worker", ENDPOINTS, 1),
    ):
        cells = [requests(options, database, endpoints, workers) for database in options.databases]
        made.add_row(title, *(cell for row in cells for cell in row))
    return made


def requests(options: Namespace, database: str, endpoints: int, workers: int) -> list[str]:
    paths = [f"well/{number}" for number in range(endpoints)]
    with listening(database, *paths) as (library, _):
        library.manage("seed_books", "--count", str(BOOKS))
        if workers:
            library.publish(BACKLOG // ENDPOINTS)
        settings = library.environment | {"LIBRARY_ACCESS": "open"}
        with competitors.started(OURS, library.url, **settings) as server, library.working(workers):
            return [speed(options, server, f"{database}, {workers} at work", column) for column in WRITES]


def speed(options: Namespace, server: Server, title: str, column: str) -> str:
    work = Work(BOOKS, options.seconds, surnames=[], postmaster=0)
    _, answers = (load.wrk(server.port, column, number, work) for number in (0, 1))
    if answers["failed"]:
        raise load.BadAnswers(f"{title}: {answers['failed']} of {answers['requests']} requests failed")
    per_second, times = answers["requests"] / answers["seconds"], f"{answers['p50']:.1f} / {answers['p99']:.1f}"
    note(f"{title}, {COLUMNS[column]}: {per_second:,.0f}/s, {times} ms")
    return f"{per_second:,.0f}\n{times}"


if __name__ == "__main__":
    main()
