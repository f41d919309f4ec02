"""Checks the history after changes through every channel, while processes are killed, and after races for one book."""

import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from benchmarks import competitors
from benchmarks.deliveries import LIBRARIES_BY_DATABASE, Library, wait_until
from benchmarks.history import folding, races
from benchmarks.history.mixed_clients import (
    CREATE_MIRRORED_SOURCE_CODE,
    Acknowledged,
    MixedClient,
    Shared,
    run_clients,
)
from benchmarks.support import databases
from benchmarks.support.arguments import note
from benchmarks.support.credentials import create_credentials, create_session
from benchmarks.support.findings import Finding
from tests.support.logs import kill_worker

# The library has started when it answers with ten of its books.
SEEDED_BOOK_COUNT = 20
# So many processes of the server, and so many delivery workers, are killed in this time.
SECONDS, KILLS = 45, 2
DEAD_EVENTS_SQL = "SELECT error FROM webhooks_received WHERE state = 'dead'"
MAKE_DUE_SQL = "UPDATE webhooks_received SET next_at = received_at WHERE next_at IS NOT NULL"
# SQLite refuses writers that would wait too long. Each would be a warning in the log.
QUIET = {"LOG_LEVEL": "critical"}


def check_mixed_changes(options: Namespace) -> Iterator[Finding]:
    for database, create_library in LIBRARIES_BY_DATABASE.items():
        with create_library() as library:
            databases.seed_library(library.url, SEEDED_BOOK_COUNT)
            library.run_code(CREATE_MIRRORED_SOURCE_CODE)
            clients = run_mixed_clients(library)
            errors = [error for client in clients for error in client.errors]
            errors += [f"event: {error}" for (error,) in library.execute_sql(DEAD_EVENTS_SQL)]
            histories, problems = check_histories(library, [item for client in clients for item in client.acknowledged])
        title = f"{len(clients)} clients of all channels, {2 * KILLS} × kill -9 on {database}"
        yield Finding(title, summarize_clients(histories, clients), note_all(errors + problems))


def run_mixed_clients(library: Library) -> list[MixedClient]:
    """Kills a process of the server and a delivery worker at equal intervals while the clients change books."""
    with (
        competitors.start_library(library.url, **library.environment | QUIET) as server,
        library.run_workers() as workers,
    ):
        key = dict([create_credentials(library.url, server.port)["api-key"]])
        session = create_session(library.url, library.environment["SECRET_KEY"])
        shared = Shared(f"http://127.0.0.1:{server.port}", key, session, library)
        with run_clients(shared) as clients:
            for _ in range(KILLS):
                time.sleep(SECONDS / (KILLS + 1))
                kill_worker(server.pid)
                workers.append(library.start_worker())
                workers[0].kill()
                workers.pop(0).wait()
            time.sleep(SECONDS / (KILLS + 1))
        wait_until(partial(has_mirrored, library), pause=1)
    return clients


def has_mirrored(library: Library) -> bool:
    """Events of killed workers, and those that met another change, would wait for their time."""
    library.execute_sql(MAKE_DUE_SQL)
    return library.count_rows("state = 'waiting'", "received") == 0


def check_races(options: Namespace) -> Iterator[Finding]:
    for database, create_library in LIBRARIES_BY_DATABASE.items():
        with create_library() as library:
            databases.seed_library(library.url, SEEDED_BOOK_COUNT)
            with competitors.start_library(library.url, **library.environment | QUIET) as server:
                key = dict([create_credentials(library.url, server.port)["api-key"]])
                results = races.run_races(f"http://127.0.0.1:{server.port}", key, options.kills)
            histories, problems = check_histories(library, results.acknowledged)
        counts = f"{histories.count_states():,} changes of {len(histories.states):,} books"
        error_count = note_all([*results.errors, *problems])
        yield Finding(f"{options.kills} races of each kind on {database}", f"{results}; {counts}", error_count)


def check_histories(library: Library, acknowledged: Sequence[Acknowledged]) -> tuple[folding.Histories, list[str]]:
    histories = folding.read_histories(library, SEEDED_BOOK_COUNT + 1)
    return histories, folding.find_problems(histories, acknowledged, library)


def note_all(problems: Iterable[str]) -> int:
    """Prints the first problems, and returns the number of all."""
    problems = list(problems)
    for problem in problems[:10]:
        note(f"  {problem}")
    return len(problems)


def summarize_clients(histories: folding.Histories, clients: Sequence[MixedClient]) -> str:
    channels = ", ".join(f"{name} {count:,}" for name, count in sorted(histories.count_channels().items()))
    kinds = ", ".join(f"{name} {count:,}" for name, count in histories.count_kinds().items())
    acknowledged = sum(len(client.acknowledged) for client in clients)
    refused, unanswered = sum(client.refused for client in clients), sum(client.unanswered for client in clients)
    return (
        f"{histories.count_states():,} changes of {len(histories.states):,} books ({channels}; {kinds});"
        f" {acknowledged:,} states acknowledged, {refused:,} requests refused, {unanswered:,} not answered"
    )
