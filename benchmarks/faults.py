"""Checks that no event and no change is lost while workers, receivers, connections and databases fail.

Run it with `python -m benchmarks.faults`. The exit status is 1 if something was lost, or if a result is wrong.
"""

import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.deliveries import (
    Library,
    Receiver,
    count_lost,
    create_postgresql_library,
    start_library_and_receiver,
    summarize_requests,
    wait_until,
)
from benchmarks.operations import check_operations
from benchmarks.outages.bursts import check_bursts
from benchmarks.outages.clocks import check_clock_jumps
from benchmarks.outages.disks import check_full_disk
from benchmarks.outages.hangs import check_hung_database
from benchmarks.outages.kills import check_random_kills
from benchmarks.outages.poolers import check_killed_pooler
from benchmarks.outages.running_writers import build_finding, fill, serve_writers
from benchmarks.outages.slow_readers import check_slow_readers
from benchmarks.outages.standbys import check_failover
from benchmarks.outages.uploads import check_hostile_files
from benchmarks.support import load, writers
from benchmarks.support.arguments import Names, Number, note, parse_options
from benchmarks.support.findings import Finding
from tests.support.database_proxy import serve_proxy
from tests.support.postgres import Cluster, find_binary, run_unprivileged

ENDPOINT_COUNT = 50
WRITER_COUNT = 32
# A delivery to the slow receiver takes 0.1 s: a worker that has had a lease for more than 3 s is dead.
END_DEAD_LEASES_SQL = {
    "PostgreSQL": "UPDATE webhooks_delivery SET next_at = now()"
    " WHERE lease IS NOT NULL AND next_at BETWEEN now() AND now() + interval '27 seconds'",
    "SQLite": "UPDATE webhooks_delivery SET next_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE lease IS NOT NULL"
    " AND next_at BETWEEN strftime('%Y-%m-%d %H:%M:%f', 'now') AND strftime('%Y-%m-%d %H:%M:%f', 'now', '+27 seconds')",
}
MAKE_DUE_SQL = "UPDATE webhooks_delivery SET next_at = created_at WHERE next_at IS NOT NULL"
# By path: a title, then the expected state of a delivery, and the status or error of its attempt.
FAULTY_RECEIVERS: dict[str, tuple[str, str, int | str]] = {
    "hang": ("Hangs", "waiting", "No whole answer came in time."),
    "drip": ("Drips", "waiting", "No whole answer came in time."),
    "flood": ("Answers 10 GB", "delivered", 200),
    "away": ("Redirects to 169.254.169.254", "waiting", 302),
}


class LastAttempt(NamedTuple):
    """The last attempt at an endpoint: the status of the answer or the error, and the size of the stored answer."""

    state: str
    milliseconds: int
    outcome: int | str
    size: int

    def __str__(self) -> str:
        return f"{self.state} after {self.milliseconds:,} ms: {self.outcome} {self.size:,} bytes kept"


def main() -> int:
    options = parse_options(
        "benchmarks.faults",
        __doc__,
        only=Names(FAULTS),
        kills=Number(1, 1000, 100, "on PostgreSQL; a fifth on SQLite"),
        bursts=Number(1, 100, 10, "on each database, with 40 quiet seconds after each"),
        seconds=Number(10, 36_000, 600, "for which everything is killed at random"),
    )
    load.require_postgres()
    findings = []
    for name in options.only:
        note(name)
        for finding in FAULTS[name](options):
            note(f"  {finding.result}")
            findings.append(finding)
    Console(width=120).print(build_table(findings))
    return 1 if any(finding.error_count for finding in findings) else 0


def build_table(findings: list[Finding]) -> Table:
    table = Table("Fault", "What came of it", "Wrong")
    for finding in findings:
        table.add_row(finding.fault, finding.result, str(finding.error_count))
    return table


def check_killed_workers(options: Namespace) -> Iterator[Finding]:
    for database, kills in (("PostgreSQL", options.kills), ("SQLite", max(1, options.kills // 5))):
        paths = [f"slow/{number}" for number in range(ENDPOINT_COUNT)]
        with start_library_and_receiver(database, *paths) as (library, receiver):
            deliveries = 200 * kills
            library.publish(deliveries // ENDPOINT_COUNT)
            kill_workers(library, receiver, database, kills)
            requests, undelivered_count = receiver.list_requests(), library.count_rows("state <> 'delivered'")
            lost_leases = library.execute_sql("SELECT sum(claimed - attempted) FROM webhooks_delivery")[0][0]
            summary = f"{summarize_requests(requests)} with the same id"
            result = f"{summary}; {lost_leases:,} taken up again; {undelivered_count} not delivered"
            yield Finding(f"{kills} × kill -9 on {database}", result, count_lost(library, requests) + undelivered_count)


def kill_workers(library: Library, receiver: Receiver, database: str, kills: int) -> None:
    """Kills the older of two workers again and again, after equal parts of the deliveries. The last two finish."""
    with library.run_workers(2, "--concurrency=10") as workers:
        for number in range(kills):
            wait_until(partial(has_received, receiver, 195 * number))
            victim = workers.pop(0)
            victim.kill()
            victim.wait()
            workers.append(library.start_worker("--concurrency=10"))
            library.execute_sql(END_DEAD_LEASES_SQL[database])
            if number % 10 == 9:
                note(f"  {number + 1} killed, {receiver.count_requests():,} requests")

        def has_finished() -> bool:
            library.execute_sql(END_DEAD_LEASES_SQL[database])
            return library.count_rows("state = 'waiting'") == 0

        wait_until(has_finished, pause=0.5)


def has_received(receiver: Receiver, requests: int) -> bool:
    return receiver.count_requests() > requests


def check_stopped_worker(options: Namespace) -> Iterator[Finding]:
    with start_library_and_receiver("PostgreSQL", *(f"late/{number}" for number in range(10))) as (library, receiver):
        library.publish(5)
        with library.run_workers() as [worker]:
            wait_until(lambda: receiver.count_requests() == 50)
            worker.send_signal(signal.SIGSTOP)
            library.execute_sql(MAKE_DUE_SQL)
            library.run_command("deliver_webhooks", "--once")
            count_before = library.count_rows("true", "attempt")
            worker.send_signal(signal.SIGCONT)
        late_attempts = library.count_rows("true", "attempt") - count_before
        requests = receiver.list_requests()
        ignored_outcomes = library.count_rows("state = 'delivered' AND claimed = 2 AND attempted = 1")
        summary = summarize_requests(requests)
        result = f"{summary}; {ignored_outcomes} late outcomes fenced off, {late_attempts} recorded"
        error_count = count_lost(library, requests) + abs(50 - ignored_outcomes) + late_attempts
        yield Finding("SIGSTOP past the lease", result, error_count)


def check_faulty_receivers(options: Namespace) -> Iterator[Finding]:
    with start_library_and_receiver("PostgreSQL", *FAULTY_RECEIVERS, "well") as (library, _):
        max_size = int(library.run_code("from webhooks.models import MAX_ANSWER_BYTES; print(MAX_ANSWER_BYTES)"))
        library.publish(1)
        library.run_command("deliver_webhooks", "--once")
        for path, (title, *expected) in FAULTY_RECEIVERS.items():
            attempt = get_last_attempt(library, path)
            is_wrong = [attempt.state, attempt.outcome] != expected or attempt.size > max_size
            yield Finding(title, str(attempt), int(is_wrong))
        library.execute_sql(
            "UPDATE webhooks_endpoint SET url = 'http://169.254.169.254/latest' WHERE url LIKE '%/well'"
        )
        library.publish(1)
        library.run_command("deliver_webhooks", "--once", WEBHOOKS_ALLOW_PRIVATE="false")
        attempt = get_last_attempt(library, "latest")
        is_refused = attempt.state == "dead" and str(attempt.outcome).startswith("Not a public address")
        yield Finding("Is at 169.254.169.254", str(attempt), int(not is_refused))


def get_last_attempt(library: Library, path: str) -> LastAttempt:
    [(state, milliseconds, status, error, size)] = library.execute_sql(
        "SELECT delivery.state, milliseconds, status, error, length(answer) FROM webhooks_attempt AS attempt"
        " JOIN webhooks_delivery AS delivery ON delivery.id = delivery_id"
        f" JOIN webhooks_endpoint AS endpoint ON endpoint.id = endpoint_id WHERE url LIKE '%/{path}'"
        " ORDER BY attempt.id DESC LIMIT 1"
    )
    return LastAttempt(state, milliseconds, status or error, size)


def check_stopped_database(options: Namespace) -> Iterator[Finding]:
    with start_library_and_receiver("PostgreSQL", *(f"late/{number}" for number in range(10))) as (library, receiver):
        library.publish(10)
        with library.run_workers():
            wait_until(lambda: receiver.count_requests() == 100)
            run_pg_ctl(library, "stop", "-m", "immediate")
            # By then the receiver has answered all requests.
            time.sleep(5)
            run_pg_ctl(library, "start", "-l", "/dev/null")
            wait_until(lambda: library.count_rows("state = 'waiting'") == 0)
        requests = receiver.list_requests()
        undelivered_count = library.count_rows("state <> 'delivered'")
        recorded_deliveries = library.count_rows("claimed = 1 AND attempted = 1")
        result = f"{summarize_requests(requests)}; {recorded_deliveries} recorded when it was back"
        yield Finding("Database gone at finish", result, count_lost(library, requests) + undelivered_count)


def run_pg_ctl(library: Library, *command: str) -> None:
    cluster: Any = library.cluster
    run_unprivileged(find_binary("pg_ctl"), "-D", str(cluster.sockets / "data"), "-w", *command)


def check_lost_connections(options: Namespace) -> Iterator[Finding]:
    with create_postgresql_library() as library:
        fill(library)
        with (
            serve_proxy(writers.FaultyProxy, {"conninfo": library.url}) as proxy,
            serve_writers(Cluster(proxy.folder).url(), WRITER_COUNT) as (_, running),
        ):
            proxy.is_breaking = True
            wait_until(lambda: proxy.fault_count >= 10 * options.kills)
        name = f"{proxy.fault_count:,} × a connection of {WRITER_COUNT} writers"
        yield build_finding(name, library.url, running)


FAULTS: dict[str, Callable[[Namespace], Iterator[Finding]]] = {
    "kill": check_killed_workers,
    "stop": check_stopped_worker,
    "receivers": check_faulty_receivers,
    "database": check_stopped_database,
    "connections": check_lost_connections,
    "operations": check_operations,
    "hung": check_hung_database,
    "readers": check_slow_readers,
    "files": check_hostile_files,
    "failover": check_failover,
    "disk": check_full_disk,
    "clock": check_clock_jumps,
    "pooler": check_killed_pooler,
    "bursts": check_bursts,
    "everything": check_random_kills,
}


if __name__ == "__main__":
    sys.exit(main())
