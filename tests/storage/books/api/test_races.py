"""Many clients of both versions and many librarians at once, against the served library: nothing is half done."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from django.db import connection, transaction
from django.utils import timezone

from books.models import Book, Change
from books.writing import changes
from books.writing.events import ALWAYS_CHANGED
from tests.support.books import ACTOR, build_book, build_isbn
from tests.support.books_admin import ADD, LIST, submit_concurrently
from tests.support.concurrency import count_statuses, run_concurrently, start_concurrently
from tests.support.pages import parse_error
from tests.support.server import Service, copy_seeded_database, serve_library

BOOKS, BULK = "/api/v2/books", "/api/v2/books/bulk"
EVENTS_BY_KIND = {
    Change.Kind.CREATED: "book.created",
    Change.Kind.CHANGED: "book.updated",
    Change.Kind.DELETED: "book.deleted",
    Change.Kind.RESTORED: "book.created",
}
ROUNDS = range(3)
WRITER_COUNT, CHANGES_PER_WRITER = 16, 3


class History(NamedTuple):
    """The kinds of a book's events in their order, and the book after the last of them."""

    kinds: list[str]
    book: dict[str, Any]


def replay_events(service: Service, pk: int) -> History:
    """Checks the events of a book that was created with events, and returns its history."""
    statement = f"SELECT body FROM webhooks_event WHERE subject = {pk} ORDER BY id"  # noqa: S608  # an integer
    events = [json.loads(bytes(body)) for (body,) in service.fetch_all(statement)]
    for before, after in pairwise(events):
        check_step(after["event"], before["data"]["book"], **after["data"])
    kinds, book = [event["event"] for event in events], events[-1]["data"]["book"]
    assert (kinds[0], events[0]["data"]["book"]["version"]) == ("book.created", 1)
    # A deletion is a version of its own in the history.
    versions = service.fetch_all(f"SELECT version FROM books_change WHERE book_id = {pk} ORDER BY id")  # noqa: S608
    assert versions == [(version,) for version in range(1, len(events) + 1)]
    # Nothing follows a deletion.
    assert set(kinds[1:-1]) <= {"book.updated"}
    return History(kinds, book)


def check_step(kind: str, before: dict[str, Any], book: dict[str, Any], previous: dict[str, Any]) -> None:
    """Checks that an event begins in the state in which the event before it ended."""
    if kind == "book.deleted":
        assert book == before
        return
    assert book["version"] == before["version"] + 1
    assert previous
    assert drop_versions({**book, **previous}) == drop_versions(before)


def drop_versions(book: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in book.items() if name not in ALWAYS_CHANGED}


def send(
    client: httpx.Client, method: str, address: str, body: Any = None, etag: str | None = None, **headers: str
) -> httpx.Response:
    return client.request(method, address, json=body, headers={**({"If-Match": etag} if etag else {}), **headers})


def create(address: str = BOOKS, **fields: Any) -> Any:
    return partial(send, method="POST", address=address, body=build_book(**fields))


def put(address: str, **fields: Any) -> Any:
    """A change through version 1, which takes single fields."""
    return partial(send, method="PUT", address=address, body=fields)


def patch(address: str, etag: str | None = None, **fields: Any) -> Any:
    return partial(send, method="PATCH", address=address, body=fields, etag=etag)


def delete(address: str) -> Any:
    return partial(send, method="DELETE", address=address)


def restore(address: str) -> Any:
    return partial(send, method="POST", address=f"{address}/restore")


def revert(address: str, version: int, etag: str | None = None) -> Any:
    return partial(send, method="POST", address=f"{address}/revert", body={"version": version}, etag=etag)


def send_bulk(operations: Sequence[dict[str, Any]], query: str = "") -> Any:
    return partial(send, method="POST", address=BULK + query, body={"operations": operations})


def update(pk: int, **fields: Any) -> dict[str, Any]:
    return {"op": "update", "id": pk, "book": fields}


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    with service.open_client() as client:
        yield client


def create_book(client: httpx.Client, address: str = BOOKS) -> tuple[str, dict[str, Any]]:
    """Returns the address of a book, and the response to its creation."""
    response = create(address)(client)
    return response.headers["Location"], response.json()


def read_history(service: Service, address: str) -> list[Change.Kind]:
    """Returns the kinds of the changes of a book. Each version has one, and each change one event."""
    pk = int(address.rpartition("/")[2])
    rows = service.fetch_all(f"SELECT version, kind FROM books_change WHERE book_id = {pk} ORDER BY version")  # noqa: S608  # a number
    events = service.fetch_all(f"SELECT kind FROM webhooks_event WHERE subject = {pk}")  # noqa: S608
    kinds = [Change.Kind(kind) for _, kind in rows]
    assert [version for version, _ in rows] == list(range(1, len(rows) + 1))
    assert Counter(kind for (kind,) in events) == Counter(EVENTS_BY_KIND[kind] for kind in kinds)
    return kinds


# Requests of which one succeeds


def create_one_isbn(client: httpx.Client) -> list[Any]:
    isbn = build_book()["isbn"]
    return [create("/api/books", isbn=isbn, title=str(number)) for number in range(6)]


def change_to_one_isbn(client: httpx.Client) -> list[Any]:
    isbn = build_book()["isbn"]
    return [put(create_book(client, "/api/books")[0], isbn=isbn) for _ in range(6)]


def change_one_state(client: httpx.Client, **headers: str) -> list[Any]:
    address, _ = create_book(client, "/api/books")
    etag = client.get(address).headers["ETag"]
    changes = [put(address, year=2000), put(address, year=2001), put(address, title="Emma"), delete(address)]
    return [partial(change, etag=etag, **headers) for change in changes]


def change_one_version(client: httpx.Client) -> list[Any]:
    _, book = create_book(client)
    return [send_bulk([{**update(book["id"], year=number), "version": 1}]) for number in range(6)]


def change_and_revert_one_state(client: httpx.Client) -> list[Any]:
    address, _ = create_book(client)
    etag = patch(address, year=1)(client).headers["ETag"]
    return [revert(address, 1, etag), revert(address, 1, etag), patch(address, etag, title="Emma")]


def delete_one_book(client: httpx.Client) -> list[Any]:
    return [delete(create_book(client, "/api/books")[0])] * 6


def restore_one_book(client: httpx.Client) -> list[Any]:
    address, _ = create_book(client)
    delete(address)(client)
    return [restore(address)] * 6


# By the requests, the statuses of all others. What the compiled path does not take is `Content-Encoding`.
RACES: dict[Any, set[int]] = {
    create_one_isbn: {409},
    change_to_one_isbn: {409},
    change_one_state: {404, 412},
    lambda client: change_one_state(client, **{"Content-Encoding": "identity"}): {404, 412},
    change_one_version: {409},
    change_and_revert_one_state: {412},
    delete_one_book: {404},
    restore_one_book: {409},
}


@pytest.mark.parametrize("prepare", RACES)
def test_one_of_many_requests_succeeds(service: Service, client: httpx.Client, prepare: Any) -> None:
    responses = run_concurrently(service, prepare(client))
    assert {response.status_code for response in responses if response.is_error} <= RACES[prepare]
    [success] = [response for response in responses if response.is_success]
    if "id" in (book := success.json()):
        home = success.request.url.path.partition("/books")[0]
        assert client.get(f"{home}/books/{book['id']}").json() == book


# Changes of version 1


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one isolation")
def test_a_serialization_failure_is_answered_409(tmp_path: Path) -> None:
    with copy_seeded_database(tmp_path) as url:
        serializable_url = f"{url}?options=-c%20default_transaction_isolation%3Dserializable"
        with serve_library(tmp_path, serializable_url) as service:
            for _ in range(5):
                responses = run_concurrently(service, [put("/api/books/1", title=f"T{number}") for number in range(8)])
                assert count_statuses(responses).keys() <= {200, 409}
                assert 200 in count_statuses(responses)


# Changes of version 2


def test_bulks_that_change_books_in_opposite_order_both_succeed(service: Service, client: httpx.Client) -> None:
    books = [create_book(client) for _ in range(10)]
    for number in ROUNDS:
        operations = [update(book["id"], year=number) for _, book in books]
        reversed_operations = [update(book["id"], genre=f"G{number}") for _, book in reversed(books)]
        responses = run_concurrently(service, [send_bulk(operations), send_bulk(reversed_operations)])
        assert count_statuses(responses) == {200: 2}
    found = [client.get(address).json() for address, _ in books]
    assert {(book["year"], book["genre"], book["version"]) for book in found} == {(2, "G2", 7)}


def test_one_of_two_bulks_that_create_isbns_in_opposite_order_succeeds(service: Service) -> None:
    for _ in range(2):
        operations = [{"op": "create", "book": build_book()} for _ in range(20)]
        responses = run_concurrently(service, [send_bulk(operations), send_bulk(operations[::-1])])
        assert count_statuses(responses) == {200: 1, 409: 1}
        assert {parse_error(response)[1] for response in responses if response.is_error} == {"CONFLICT"}
        (results,) = [response.json()["results"] for response in responses if response.is_success]
        assert len({result["id"] for result in results}) == 20


@pytest.mark.parametrize("method", ["DELETE", "bulk"])
def test_a_change_never_restores_a_deleted_book(service: Service, client: httpx.Client, method: str) -> None:
    for _ in ROUNDS:
        address, book = create_book(client)
        patch(address, year=1)(client)
        deletion = delete(address) if method == "DELETE" else send_bulk([{"op": "delete", "id": book["id"]}])
        singles = [*(patch(address, year=number) for number in range(3)), revert(address, 1), revert(address, 1)]
        bulk = send_bulk([update(book["id"], genre="Bulk")])
        deleted, changed, *others = run_concurrently(service, [deletion, bulk, *singles])
        assert deleted.is_success
        assert changed.status_code in (200, 422)
        assert count_statuses(others).keys() <= {200, 404}
        assert parse_error(client.get(address)) == (404, "NOT_FOUND", [])
        kinds = read_history(service, address)
        assert (kinds[-1], kinds.count(Change.Kind.DELETED)) == (Change.Kind.DELETED, 1)


def test_a_dry_run_does_not_block_other_writers(service: Service, client: httpx.Client) -> None:
    address, book = create_book(client)
    rehearsal = send_bulk([update(book["id"], title="Rehearsed")], "?dry_run=true")
    responses = run_concurrently(service, [*[rehearsal] * 6, *(patch(address, year=number) for number in range(6))])
    assert count_statuses(responses) == {200: 12}
    found = client.get(address).json()
    assert (found["title"], found["version"]) == (book["title"], 7)


# Reversions and restorations


def test_a_restoration_and_a_book_with_its_isbn_exclude_each_other(service: Service, client: httpx.Client) -> None:
    for _ in ROUNDS:
        address, book = create_book(client)
        delete(address)(client)
        restoration, *creations = run_concurrently(service, [restore(address), *[create(isbn=book["isbn"])] * 3])
        assert count_statuses([restoration, *creations]) == {201: 1, 409: 3}
        [holder] = client.get(BOOKS, params={"isbn": book["isbn"]}).json()["results"]
        assert (holder["id"] == book["id"]) is restoration.is_success
        assert client.get(address).is_success is restoration.is_success
        assert len(read_history(service, address)) == (3 if restoration.is_success else 2)


@pytest.mark.django_db(transaction=True)
def test_the_second_of_two_restorations_at_a_time_finds_the_book_there() -> None:
    """It read the deleted book before the first one ended, and would else say that another book has the isbn."""
    now = timezone.now()
    pk = changes.create_book(build_book(), ACTOR, now).id
    changes.delete_book(pk, lambda _: None, ACTOR, now)
    with transaction.atomic():
        changes.restore_book(pk, ACTOR, now)
        second = start_concurrently(partial(changes.restore_book, pk, ACTOR, now))
    with pytest.raises(changes.BookExists):
        second.result()
    assert Book.objects.values_list("version", flat=True).get(pk=pk) == 3


# Many writers of one book


def change_fields(client: httpx.Client, pk: int, number: int) -> list[httpx.Response]:
    """Sends values that no other writer sends, in both versions."""
    numbers = range(CHANGES_PER_WRITER * number, CHANGES_PER_WRITER * (number + 1))
    return [
        put(f"/api/books/{pk}", year=value)(client) if value % 2 else patch(f"{BOOKS}/{pk}", title=str(value))(client)
        for value in numbers
    ]


def test_every_acknowledged_change_is_one_version_and_one_event(service: Service, client: httpx.Client) -> None:
    pk = create(year=-1)(client).json()["id"]
    answers = run_concurrently(
        service, [partial(change_fields, pk=pk, number=number) for number in range(WRITER_COUNT)]
    )
    responses = [response for group in answers for response in group]
    change_count = WRITER_COUNT * CHANGES_PER_WRITER
    assert count_statuses(responses) == {200: change_count}
    books = [response.json() for response in responses]
    assert len({(book["year"], book["title"]) for book in books}) == change_count
    kinds, book = replay_events(service, pk)
    assert kinds == ["book.created"] + ["book.updated"] * change_count
    assert client.get(f"{BOOKS}/{pk}").json() == book


# Forms of librarians


def test_only_one_of_many_librarians_adds_the_same_isbn(service: Service) -> None:
    form = {**build_book(isbn=build_isbn(1_000_000), title="Raced"), "available": "on"}
    responses = submit_concurrently(service, ADD, [form] * 6)
    assert {response.status_code for response in responses} == {200}
    assert sum("was added successfully" in response.text for response in responses) == 1


def test_only_one_of_many_librarians_saves_without_a_question(service: Service) -> None:
    [(pk,)] = service.fetch_all("SELECT max(id) FROM books_book")
    forms = [{"title": f"Title {number}"} for number in range(6)]
    responses = submit_concurrently(service, f"{LIST}{pk}/change/", forms)
    assert sum("Saved." in response.text for response in responses) == 1
    assert sum("Nothing is saved yet" in response.text for response in responses) == 5
