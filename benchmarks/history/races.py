"""Races for one book: at once it is reverted or restored, changed and deleted, and new books take its isbn."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from threading import Barrier
from typing import Any, NamedTuple

import httpx

from benchmarks.history.mixed_clients import BOOKS, Acknowledged, build_book, select_members

# Nothing was changed: there is no book, it has another state, or another book has the isbn.
REFUSALS = {404, 409, 412}
# Seconds within which all start: requests that take longer must be able to come first too.
START_SPAN = 0.03


class Runner(NamedTuple):
    """A request of a race, and its name in the results."""

    name: str
    method: str
    path: str
    body: dict[str, Any] | None = None
    etag: str | None = None

    def send(self, client: httpx.Client) -> httpx.Response:
        """Repeats what SQLite's queue of writers refuses."""
        headers = {"If-Match": self.etag} if self.etag else {}
        while True:
            answer = client.request(self.method, self.path, json=self.body, headers=headers)
            if answer.status_code != 503:
                return answer


class Race(NamedTuple):
    """Requests that are sent at the same moment, and whether they can succeed so many times each."""

    runners: Sequence[Runner]
    is_possible: Callable[[Counter[str]], bool]


@dataclass
class Results:
    """`statuses` counts the answers by the name of the request and the status."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        names = dict.fromkeys(name for name, _ in sorted(self.statuses))
        return "; ".join(f"{name} {self.format_statuses(name)}" for name in names)

    def format_statuses(self, name: str) -> str:
        counts = sorted((status, number) for (other, status), number in self.statuses.items() if other == name)
        return ", ".join(f"{status} × {number:,}" for status, number in counts)

    def add(self, runner: Runner, answer: httpx.Response) -> None:
        self.statuses[runner.name, answer.status_code] += 1
        if answer.is_success:
            self.acknowledged.append(read_state(runner, answer))
        elif answer.status_code not in REFUSALS:
            self.errors.append(f"{runner}: {answer.status_code} {answer.text[:300]}")


def read_state(runner: Runner, answer: httpx.Response) -> Acknowledged:
    if answer.status_code == 204:
        return Acknowledged(int(runner.path.rpartition("/")[2]), None, None)
    book = answer.json()
    return Acknowledged(book["id"], book["version"], select_members(book))


def run_races(url: str, headers: dict[str, str], rounds: int) -> Results:
    results, numbers = Results(), count(1)
    with ExitStack() as stack:
        clients = [stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=60)) for _ in range(8)]
        pool = stack.enter_context(ThreadPoolExecutor(len(clients)))
        for _ in range(rounds):
            for prepare in (prepare_reversions, prepare_restorations):
                run_race(prepare(clients[0], build_book(next(numbers)), results), clients, pool, results)
    return results


def run_race(race: Race, clients: Sequence[httpx.Client], pool: ThreadPoolExecutor, results: Results) -> None:
    runners = random.sample(race.runners, len(race.runners))
    barrier = Barrier(len(runners), timeout=60)

    def run(runner: Runner, client: httpx.Client) -> httpx.Response:
        barrier.wait()
        time.sleep(random.uniform(0, START_SPAN))  # noqa: S311  # no secret
        return runner.send(client)

    answers = list(pool.map(run, runners, clients))
    for runner, answer in zip(runners, answers, strict=True):
        results.add(runner, answer)
    successes = Counter(runner.name for runner, answer in zip(runners, answers, strict=True) if answer.is_success)
    if not race.is_possible(successes):
        results.errors.append(f"impossible: {dict(successes)}")


def prepare_reversions(client: httpx.Client, body: dict[str, Any], results: Results) -> Race:
    """All but the new books require the second state of a book, whose first isbn is free."""
    path = create_book(client, body, results)
    answer = send(client, Runner("prepare", "PATCH", path, {"isbn": f"{body['isbn']}-new", "year": -1}), results)
    etag = answer.headers["ETag"]
    runners = [
        *[Runner("revert", "POST", f"{path}/revert", {"version": 1}, etag)] * 3,
        *(Runner("change", "PATCH", path, {"year": year}, etag) for year in (1, 2)),
        Runner("delete", "DELETE", path, etag=etag),
        *[Runner("create", "POST", BOOKS, body)] * 2,
    ]
    return Race(runners, is_reversion_possible)


def is_reversion_possible(successes: Counter[str]) -> bool:
    """One request finds the state that all require. One gets the first isbn."""
    writers = successes["revert"] + successes["change"] + successes["delete"]
    return (writers, successes["revert"] + successes["create"]) == (1, 1)


def prepare_restorations(client: httpx.Client, body: dict[str, Any], results: Results) -> Race:
    """A book is deleted, and its isbn is free."""
    path = create_book(client, body, results)
    send(client, Runner("prepare", "DELETE", path), results)
    runners = [
        *[Runner("restore", "POST", f"{path}/restore")] * 3,
        Runner("restore a state", "POST", f"{path}/restore", etag='"1-1"'),
        Runner("change the deleted", "PATCH", path, {"year": 1}),
        Runner("delete the deleted", "DELETE", path),
        *[Runner("create with its isbn", "POST", BOOKS, body)] * 2,
    ]
    return Race(runners, is_restoration_possible)


def is_restoration_possible(successes: Counter[str]) -> bool:
    """A book that is restored can be deleted once more. At the end one book at most has the isbn."""
    restored = successes["restore"] - successes["delete the deleted"]
    created = successes["create with its isbn"]
    return (
        successes["restore"] + created > 0
        and 0 <= restored <= restored + created <= 1
        and not successes["restore a state"]
        and (successes["restore"] > 0 or not successes["change the deleted"])
    )


def create_book(client: httpx.Client, body: dict[str, Any], results: Results) -> str:
    """Returns the address."""
    return str(send(client, Runner("prepare", "POST", BOOKS, body), results).headers["Location"])


def send(client: httpx.Client, runner: Runner, results: Results) -> httpx.Response:
    """Raises HTTPStatusError if it is refused."""
    answer = runner.send(client).raise_for_status()
    results.acknowledged.append(read_state(runner, answer))
    return answer
