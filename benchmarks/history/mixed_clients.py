"""Clients that change the same books through every channel, and remember each state that was acknowledged."""

import csv
import json
import random
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4

import httpx

from benchmarks.deliveries import Library
from books.files.seeds import make_isbn
from tests.clients.provider import send_event

BOOKS = "/api/v2/books"
ADMIN = "/admin/books/book/"
# Shared, so that clients meet: the last books that were added, and those that were deleted.
MAX_SHARED_BOOKS = 60
IMPORTED_ROWS, COMMANDED_ROWS = 25, 10
ISBN_SEED = 8
# A request was refused because others were faster, or it waits too long: nothing was changed.
REFUSALS = {404, 409, 412, 422}
SOURCE_NAME, SOURCE_SECRET = "branch", "whsec_of-the-branch"
CREATE_MIRRORED_SOURCE_CODE = (
    "from tests.support.sources import create_source;"
    f" create_source({SOURCE_NAME!r}, secrets=({SOURCE_SECRET!r},), mirrors=True)"
)
# A script of an operator, which prints the books as they were after each change.
CHANGE_BY_COMMAND_CODE = """
import json
from django.utils import timezone
from books.writing import changes
from books.history.actors import find_actor
actor = find_actor("command")
for values, year in {books!r}:
    book = changes.create_book(values, actor, timezone.now())
    print(json.dumps([book.id, book.version, book.year]))
    book = changes.change_book(book.id, {{"year": year}}, lambda book: None, actor, timezone.now())
    print(json.dumps([book.id, book.version, book.year]))
"""


class Acknowledged(NamedTuple):
    """Members that a book has at a version, or at some version where the answer names none; None is a deletion.

    A book is named by its id, or by its isbn where the answer has no id.
    """

    book: int | str
    version: int | None
    members: dict[str, Any] | None


class Shared:
    """What all clients of a library know. No two books or years are the same: each state is recognised."""

    def __init__(self, url: str, key: dict[str, str], session: dict[str, str], library: Library) -> None:
        self.url, self.key, self.session, self.library = url, key, session, library
        self.books: deque[int] = deque(maxlen=MAX_SHARED_BOOKS)
        self.deleted_books: deque[int] = deque(maxlen=MAX_SHARED_BOOKS)
        self.numbers = count(1)
        self.is_stopped = False

    def build_book(self) -> dict[str, Any]:
        return build_book(next(self.numbers))

    def choose_book(self) -> int | None:
        return random.choice(list(self.books) or [None])  # noqa: S311  # no secret

    def choose_deleted_book(self) -> int | None:
        return random.choice(list(self.deleted_books) or [None])  # noqa: S311  # no secret


class MixedClient:
    """Sends one request after another until all are stopped.

    `acknowledged` has what the answers say, `refused` counts answers that nothing was changed, `unanswered` requests of
    which nobody knows, and `errors` has other answers.
    """

    refusals: ClassVar[set[int]] = REFUSALS

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.acknowledged: list[Acknowledged] = []
        self.refused = self.unanswered = 0
        self.errors: list[str] = []

    def run(self) -> None:
        with httpx.Client(base_url=self.shared.url, timeout=60, headers=self.shared.key) as self.client:
            while not self.shared.is_stopped:
                self.act(random.random())  # noqa: S311  # no secret

    def act(self, chance: float) -> None:
        """Sends one request or a few; `chance` is a random number from 0 to 1."""
        raise NotImplementedError

    def send(self, method: str, path: str, expected: int, **options: Any) -> httpx.Response | None:
        """Returns the answer if it has the expected status."""
        try:
            answer = self.client.request(method, path, **options)
        except httpx.TransportError:
            self.unanswered += 1
            return None
        if answer.status_code == expected:
            return answer
        if answer.status_code in self.refusals or (answer.status_code == 503 and "Retry-After" in answer.headers):
            self.refused += 1
        else:
            self.errors.append(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
        return None

    def acknowledge(self, book: int | str, version: int | None, members: dict[str, Any] | None) -> None:
        self.acknowledged.append(Acknowledged(book, version, members))
        if isinstance(book, int) and members is None:
            self.shared.deleted_books.append(book)
        elif isinstance(book, int) and version == 1:
            self.shared.books.append(book)


class ClientV1(MixedClient):
    """Version 1 names the version of a book in the ETag alone."""

    def act(self, chance: float) -> None:
        pk = self.shared.choose_book()
        if pk is None or chance < 0.2:
            self.acknowledge_book(self.send("POST", "/api/books", 201, json=self.shared.build_book()))
        elif chance < 0.9:
            change = {"year": next(self.shared.numbers)}
            self.acknowledge_book(self.send("PUT", f"/api/books/{pk}", 200, json=change))
        elif self.send("DELETE", f"/api/books/{pk}", 200):
            self.acknowledge(pk, None, None)

    def acknowledge_book(self, answer: httpx.Response | None) -> None:
        if answer:
            version = int(answer.headers["ETag"].strip('"').rpartition("-")[2])
            self.acknowledge(answer.json()["id"], version, select_members(answer.json()))


class ClientV2(MixedClient):
    def act(self, chance: float) -> None:
        pk, deleted_pk = self.shared.choose_book(), self.shared.choose_deleted_book()
        if pk is None or chance < 0.15:
            self.create_book()
        elif chance < 0.6:
            change = {"year": next(self.shared.numbers), "available": chance < 0.4}
            self.acknowledge_book(self.send("PATCH", f"{BOOKS}/{pk}", 200, json=change))
        elif chance < 0.75:
            self.revert_book(pk, random.randint(1, 9))  # noqa: S311  # no secret
        elif chance < 0.9 and deleted_pk:
            self.acknowledge_book(self.send("POST", f"{BOOKS}/{deleted_pk}/restore", 201))
        elif self.send("DELETE", f"{BOOKS}/{pk}", 204):
            self.acknowledge(pk, None, None)

    def create_book(self) -> None:
        """Repeats a request that was not answered, as its Idempotency-Key allows."""
        book, headers = self.shared.build_book(), {"Idempotency-Key": str(uuid4())}
        answer = self.send("POST", BOOKS, 201, json=book, headers=headers)
        self.acknowledge_book(answer or self.send("POST", BOOKS, 201, json=book, headers=headers))

    def revert_book(self, pk: int, version: int) -> None:
        """The answer says of two versions what the book is, or was."""
        answer = self.send("POST", f"{BOOKS}/{pk}/revert", 200, json={"version": version})
        self.acknowledge_book(answer)
        if answer:
            self.acknowledged.append(Acknowledged(pk, version, select_members(answer.json())))

    def acknowledge_book(self, answer: httpx.Response | None) -> None:
        if answer:
            self.acknowledge(answer.json()["id"], answer.json()["version"], select_members(answer.json()))


class BulkClient(MixedClient):
    def act(self, chance: float) -> None:
        pks = {pk for pk in (self.shared.choose_book() for _ in range(4)) if pk}
        operations: list[dict[str, Any]] = [{"op": "create", "book": self.shared.build_book()} for _ in range(2)]
        operations += [{"op": "update", "id": pk, "book": {"year": next(self.shared.numbers)}} for pk in pks]
        if pks and chance < 0.2:
            operations[-1] = {"op": "delete", "id": operations[-1]["id"]}
        answer = self.send("POST", f"{BOOKS}/bulk", 200, json={"operations": operations})
        for operation, result in zip(operations, answer.json()["results"] if answer else (), strict=False):
            self.acknowledge(result["id"], result.get("version"), operation.get("book"))


class AdminClient(MixedClient):
    """A librarian at the forms, which name no version and no id of a new book. A refused form is shown again."""

    refusals: ClassVar[set[int]] = {*REFUSALS, 200}

    def run(self) -> None:
        with httpx.Client(base_url=self.shared.url, timeout=60) as self.client:
            self.client.cookies.update(self.shared.session)
            while not self.shared.is_stopped:
                self.act(random.random())  # noqa: S311  # no secret

    def act(self, chance: float) -> None:
        pk = self.shared.choose_book()
        if pk is None or chance < 0.3:
            book = self.shared.build_book()
            if self.submit(f"{ADMIN}add/", {**book, "available": "on"}):
                self.acknowledge(book["isbn"], 1, book)
        elif chance < 0.7:
            self.change_book(pk)
        elif chance < 0.9:
            self.submit(ADMIN, {"action": "mark_lent", "_selected_action": str(pk)})
        elif self.submit(f"{ADMIN}{pk}/delete/", {"post": "yes"}):
            self.acknowledge(pk, None, None)

    def change_book(self, pk: int) -> None:
        answer = self.send("GET", f"{BOOKS}/{pk}", 200)
        if not answer:
            return
        values = select_members(answer.json())
        initial = {f"initial-{name}": value for name, value in values.items()}
        edits = {
            **values,
            "year": make_year(next(self.shared.numbers)),
            "available": "on" if values["available"] else "",
        }
        if self.submit(f"{ADMIN}{pk}/change/", {**initial, **edits}):
            self.acknowledge(pk, None, {"year": edits["year"]})

    def submit(self, path: str, form: dict[str, Any]) -> bool:
        """Returns whether the form was accepted: then the list of books follows, else the form again."""
        if "csrftoken" not in self.client.cookies:
            self.send("GET", f"{ADMIN}add/", 200)
        token = self.client.cookies.get("csrftoken", "")
        answer = self.send("POST", path, 302, data={**form, "csrfmiddlewaretoken": token})
        return answer is not None and answer.headers["Location"] == ADMIN


class OperatorClient(MixedClient):
    """An operator who imports files and runs scripts. A command that fails to import has added nothing."""

    def act(self, chance: float) -> None:
        try:
            (self.import_books if chance < 0.5 else self.run_script)()
        except subprocess.CalledProcessError:
            self.refused += 1

    def import_books(self) -> None:
        books = [self.shared.build_book() for _ in range(IMPORTED_ROWS)]
        with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="") as file:
            writer = csv.DictWriter(file, list(books[0]))
            writer.writeheader()
            writer.writerows(books)
            file.flush()
            self.shared.library.run_command("import_books", file.name)
        for book in books:
            self.acknowledge(book["isbn"], 1, book)

    def run_script(self) -> None:
        books = [(self.shared.build_book(), next(self.shared.numbers)) for _ in range(COMMANDED_ROWS)]
        for line in self.shared.library.run_code(CHANGE_BY_COMMAND_CODE.format(books=books)).splitlines():
            pk, version, year = json.loads(line)
            self.acknowledge(pk, version, {"year": year})


class MirrorClient(MixedClient):
    """Another library, which sends the events of its own books. Those of one book can overtake each other."""

    def run(self) -> None:
        self.remote_books: dict[int, dict[str, Any]] = {}
        self.deleted_ids: set[int] = set()
        super().run()
        for pk, book in self.remote_books.items():
            self.acknowledge(book["isbn"], None, None if pk in self.deleted_ids else select_members(book))

    def act(self, chance: float) -> None:
        pk = random.choice([*self.remote_books, 0])  # noqa: S311  # no secret
        if not pk or chance < 0.1:
            pk = len(self.remote_books) + 1
            self.remote_books[pk] = self.build_remote_book(pk)
            kind = "created"
        elif pk in self.deleted_ids:
            kind = "created"
            self.deleted_ids.discard(pk)
        else:
            kind = "deleted" if chance < 0.2 else "updated"
        self.announce(kind, pk)

    def build_remote_book(self, pk: int) -> dict[str, Any]:
        time = "2026-01-31T09:30:00.000000Z"
        times = {"created_at": time, "updated_at": time}
        return {"id": pk, **self.shared.build_book(), "isbn13": None, "available": True, **times, "version": 0}

    def announce(self, kind: str, pk: int) -> None:
        """Sends the event until it is answered: its id stays the same.

        A deletion has a version of its own, which its event does not name.
        """
        book = self.remote_books[pk]
        if kind == "updated":
            book["year"] = next(self.shared.numbers)
        if kind == "deleted":
            self.deleted_ids.add(pk)
        announced_version = book["version"] if kind == "deleted" else book["version"] + 1
        book["version"] += 1
        head = {"id": str(uuid4()), "event": f"book.{kind}", "timestamp": book["updated_at"], "api_version": 2}
        event = {**head, "data": {"book": {**book, "version": announced_version}, "previous": {}}}
        url = f"{self.shared.url}/webhooks/receive/{SOURCE_NAME}"
        while not is_accepted(url, event):
            self.unanswered += 1


def build_book(number: int) -> dict[str, Any]:
    return {
        "title": f"Emma, volume {number}",
        "author": "Jane Austen",
        "year": make_year(number),
        "isbn": make_isbn(ISBN_SEED, number),
        "genre": "Novel",
    }


def make_year(number: int) -> int:
    """Returns a year that no form asks about."""
    return 1500 + number % 500


def is_accepted(url: str, event: dict[str, Any]) -> bool:
    try:
        return send_event(url, SOURCE_SECRET, "B", event) == 200
    except OSError:
        return False


def select_members(book: dict[str, Any]) -> dict[str, Any]:
    return {name: book[name] for name in ("title", "author", "year", "isbn", "genre", "available")}


CLIENTS: Sequence[type[MixedClient]] = (
    *[ClientV1] * 4,
    *[ClientV2] * 5,
    *[BulkClient] * 2,
    *[AdminClient] * 3,
    OperatorClient,
    MirrorClient,
)


@contextmanager
def run_clients(shared: Shared) -> Iterator[list[MixedClient]]:
    """Runs the clients during the block. Raises what they raise."""
    clients = [client_class(shared) for client_class in CLIENTS]
    with ThreadPoolExecutor(len(clients)) as pool:
        futures = [pool.submit(client.run) for client in clients]
        try:
            yield clients
        finally:
            shared.is_stopped = True
    for future in futures:
        future.result()
