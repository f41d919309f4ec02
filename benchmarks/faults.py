"""What becomes of events while machines, receivers and databases fail: `python -m benchmarks.faults`.

Exit status 1 if anything was lost, or came out wrong.
"""

import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import competitors, databases
from benchmarks.arguments import among, note, within
from benchmarks.competitors import OURS
from benchmarks.deliveries import Library, Receiver, Sent, listening, on_postgresql, until
from tests.clients.provider import provide
from tests.support.postgres import binary, unprivileged

ENDPOINTS = 50
# A delivery to the slow receiver takes a tenth of a second: who holds a lease for longer than three is dead.
DEAD_LEASES = {
    "PostgreSQL": "UPDATE webhooks_delivery SET next_at = now()"
    " WHERE lease IS NOT NULL AND next_at BETWEEN now() AND now() + interval '27 seconds'",
    "SQLite": "UPDATE webhooks_delivery SET next_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE lease IS NOT NULL"
    " AND next_at BETWEEN strftime('%Y-%m-%d %H:%M:%f', 'now') AND strftime('%Y-%m-%d %H:%M:%f', 'now', '+27 seconds')",
}
TIME_PASSES = "UPDATE webhooks_delivery SET next_at = created_at WHERE next_at IS NOT NULL"
# What becomes of a delivery to each, and by what status or error.
ILL: dict[str, tuple[str, str, int | str]] = {
    "hang": ("Hangs", "waiting", "No whole answer came in time."),
    "drip": ("Drips", "waiting", "No whole answer came in time."),
    "flood": ("Answers 10 GB", "delivered", 200),
    "away": ("Redirects to 169.254.169.254", "waiting", 302),
}
SIGNED_WITH = "whsec_of-the-branch"
SOURCE = f"from tests.support.sources import source; source('branch', secrets=({SIGNED_WITH!r},))"
ROLLED_BACK = """
from contextlib import suppress
from django.db import transaction
from django.utils import timezone
from books import changes
from tests.support.books import new_book
with suppress(ZeroDivisionError), transaction.atomic():
    changes.add(new_book(), timezone.now())
    1 / 0
"""


class Finding(NamedTuple):
    """What was done, what came of it, and how much of it is wrong: an event that was lost, above all."""

    fault: str
    what: str
    wrong: int


class Became(NamedTuple):
    """The last attempt at an endpoint: the state, the answer's status or the error, and how much of it was kept."""

    state: str
    milliseconds: int
    outcome: int | str
    size: int

    def __str__(self) -> str:
        return f"{self.state} after {self.milliseconds:,} ms: {self.outcome} {self.size:,} bytes kept"


def main() -> int:
    options = arguments()
    # A plain kill must run the clean-up below too, or the workers would outlive us.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found = []
    for name in options.only:
        note(name)
        for finding in FAULTS[name](options):
            note(f"  {finding.what}")
            found.append(finding)
    Console(width=120).print(table(found))
    return 1 if any(finding.wrong for finding in found) else 0


def arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--only", type=among(FAULTS), default=list(FAULTS), help=", ".join(FAULTS))
    parser.add_argument("--kills", type=within(1, 1000), default=100, help="on PostgreSQL; a fifth on SQLite")
    return parser.parse_args()


def table(found: list[Finding]) -> Table:
    made = Table("Fault", "What came of it", "Wrong")
    for finding in found:
        made.add_row(finding.fault, finding.what, str(finding.wrong))
    return made


def summary(sent: list[Sent]) -> str:
    distinct = len({(one.path, one.event) for one in sent})
    return f"{len(sent):,} requests for {distinct:,} deliveries: {len(sent) - distinct:,} duplicates"


def lost(library: Library, sent: list[Sent]) -> int:
    """What is recorded as delivered, or is to be, but was never here; and what was here under ids of nobody."""
    rows = library.sql(
        """
        SELECT event.uuid, endpoint.url FROM webhooks_delivery AS delivery
        JOIN webhooks_event AS event ON event.id = event_id
        JOIN webhooks_endpoint AS endpoint ON endpoint.id = endpoint_id
        """
    )
    expected = {(str(uuid).replace("-", ""), "/" + url.split("/", 3)[3]) for uuid, url in rows}
    return len(expected ^ {(one.event.replace("-", ""), one.path) for one in sent})


def killed(options: Namespace) -> Iterator[Finding]:
    for database, kills in (("PostgreSQL", options.kills), ("SQLite", max(1, options.kills // 5))):
        with listening(database, *(f"slow/{number}" for number in range(ENDPOINTS))) as (library, receiver):
            deliveries = 200 * kills
            library.publish(deliveries // ENDPOINTS)
            kill_workers(library, receiver, database, kills)
            sent, undelivered = receiver.sent(), library.count("state <> 'delivered'")
            died = library.sql("SELECT sum(claimed - attempted) FROM webhooks_delivery")[0][0]
            what = f"{summary(sent)} with the same id; {died:,} taken up again; {undelivered} not delivered"
            yield Finding(f"{kills} × kill -9 on {database}", what, lost(library, sent) + undelivered)


def kill_workers(library: Library, receiver: Receiver, database: str, kills: int) -> None:
    """The older of two, each time that another part of the whole was delivered; the last two then finish."""
    with library.working(2, "--concurrency=10") as workers:
        for number in range(kills):
            until(partial(reached, receiver, 195 * number))
            victim = workers.pop(0)
            victim.kill()
            victim.wait()
            workers.append(library.worker("--concurrency=10"))
            library.sql(DEAD_LEASES[database])
            if number % 10 == 9:
                note(f"  {number + 1} killed, {receiver.count():,} requests")

        def finished() -> bool:
            library.sql(DEAD_LEASES[database])
            return library.count("state = 'waiting'") == 0

        until(finished, pause=0.5)


def reached(receiver: Receiver, requests: int) -> bool:
    return receiver.count() > requests


def stopped(options: Namespace) -> Iterator[Finding]:
    with listening("PostgreSQL", *(f"late/{number}" for number in range(10))) as (library, receiver):
        library.publish(5)
        with library.working() as [late]:
            until(lambda: receiver.count() == 50)
            late.send_signal(signal.SIGSTOP)
            library.sql(TIME_PASSES)
            library.manage("deliver_webhooks", "--once")
            before = library.count("true", "attempt")
            late.send_signal(signal.SIGCONT)
        after, sent = library.count("true", "attempt"), receiver.sent()
        fenced = library.count("state = 'delivered' AND claimed = 2 AND attempted = 1")
        what = f"{summary(sent)}; {fenced} late outcomes fenced off, {after - before} recorded"
        yield Finding("SIGSTOP past the lease", what, lost(library, sent) + abs(50 - fenced) + after - before)


def ill_receivers(options: Namespace) -> Iterator[Finding]:
    with listening("PostgreSQL", *ILL, "well") as (library, _):
        largest = int(library.shell("from webhooks.models import MAX_ANSWER_BYTES; print(MAX_ANSWER_BYTES)"))
        library.publish(1)
        library.manage("deliver_webhooks", "--once")
        for manner, (title, *expected) in ILL.items():
            found = became(library, manner)
            yield Finding(title, str(found), int([found.state, found.outcome] != expected or found.size > largest))
        library.sql("UPDATE webhooks_endpoint SET url = 'http://169.254.169.254/latest' WHERE url LIKE '%/well'")
        library.publish(1)
        library.manage("deliver_webhooks", "--once", WEBHOOKS_ALLOW_PRIVATE="false")
        found = became(library, "latest")
        refused = (found.state, found.outcome) == ("dead", "The address is not a public one.")
        yield Finding("Is at 169.254.169.254", str(found), int(not refused))


def became(library: Library, manner: str) -> Became:
    [(state, milliseconds, status, error, size)] = library.sql(
        "SELECT delivery.state, milliseconds, status, error, length(answer) FROM webhooks_attempt AS attempt"
        " JOIN webhooks_delivery AS delivery ON delivery.id = delivery_id"
        f" JOIN webhooks_endpoint AS endpoint ON endpoint.id = endpoint_id WHERE url LIKE '%/{manner}'"
        " ORDER BY attempt.id DESC LIMIT 1"
    )
    return Became(state, milliseconds, status or error, size)


def database_gone(options: Namespace) -> Iterator[Finding]:
    with listening("PostgreSQL", *(f"late/{number}" for number in range(10))) as (library, receiver):
        library.publish(10)
        with library.working():
            until(lambda: receiver.count() == 100)
            server(library, "stop", "-m", "immediate")
            # Until the receiver has answered all.
            time.sleep(5)
            server(library, "start", "-l", "/dev/null")
            until(lambda: library.count("state = 'waiting'") == 0)
        sent = receiver.sent()
        undelivered = library.count("state <> 'delivered'")
        recorded = library.count("claimed = 1 AND attempted = 1")
        what = f"{summary(sent)}; {recorded} recorded when it was back"
        yield Finding("Database gone at finish", what, lost(library, sent) + undelivered)


def server(library: Library, *command: str) -> None:
    cluster: Any = library.cluster
    unprivileged(binary("pg_ctl"), "-D", str(cluster.sockets / "data"), "-w", *command)


def same_event(options: Namespace) -> Iterator[Finding]:
    with on_postgresql() as library:
        databases.seed(library.url, 20)
        library.shell(SOURCE)
        with competitors.started(OURS, library.url, **library.environment) as running, ThreadPoolExecutor(12) as pool:
            url = f"http://127.0.0.1:{running.port}/webhooks/receive/branch"
            one = {"id": "one", "event": "shelf.moved", "timestamp": "2026-01-31T09:30:00Z", "data": {}}
            statuses = list(pool.map(lambda _: provide(url, SIGNED_WITH, "B", one), range(12)))
        kept = library.count("true", "received")
        what = f"{statuses.count(200)} answered 200, {kept} kept"
        yield Finding("One event received 12 times at once", what, abs(1 - kept))


def rolled_back(options: Namespace) -> Iterator[Finding]:
    with listening("PostgreSQL", "well") as (library, receiver):
        library.shell(ROLLED_BACK)
        library.manage("deliver_webhooks", "--once")
        kept, sent = library.count("true", "event"), receiver.count()
        yield Finding("The change is rolled back", f"{kept} events, {sent} requests", kept + sent)


FAULTS: dict[str, Callable[[Namespace], Iterator[Finding]]] = {
    "kill": killed,
    "stop": stopped,
    "receivers": ill_receivers,
    "database": database_gone,
    "inbox": same_event,
    "rollback": rolled_back,
}


if __name__ == "__main__":
    sys.exit(main())
