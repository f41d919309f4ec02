"""Reversions and restorations at the same time as other writers, against the served library: nothing is half done."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from django.db import transaction
from django.utils import timezone

from books.models import Book, Change
from books.writing import changes
from tests.support.books import ACTOR, build_book
from tests.support.concurrency import count_statuses, run_concurrently, start_concurrently
from tests.support.pages import parse_error
from tests.support.server import Service

BOOKS = "/api/v2/books"
EVENTS_BY_KIND = {
    Change.Kind.CREATED: "book.created",
    Change.Kind.CHANGED: "book.updated",
    Change.Kind.DELETED: "book.deleted",
    Change.Kind.RESTORED: "book.created",
}
ROUNDS = range(3)


def send(client: httpx.Client, method: str, address: str, body: Any = None, etag: str | None = None) -> httpx.Response:
    return client.request(method, address, json=body, headers={"If-Match": etag} if etag else {})


def restore(address: str) -> Any:
    return partial(send, method="POST", address=f"{address}/restore")


def revert(address: str, version: int, etag: str | None = None) -> Any:
    return partial(send, method="POST", address=f"{address}/revert", body={"version": version}, etag=etag)


def delete(address: str) -> Any:
    return partial(send, method="DELETE", address=address)


def create(**fields: Any) -> Any:
    return partial(send, method="POST", address=BOOKS, body=build_book(**fields))


def patch(address: str, etag: str | None = None, **fields: Any) -> Any:
    return partial(send, method="PATCH", address=address, body=fields, etag=etag)


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    with service.open_client() as client:
        yield client


def create_book(client: httpx.Client) -> tuple[str, dict[str, Any]]:
    """Returns the address of a book, and the response to its creation."""
    response = create()(client)
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


def test_one_of_many_restorations_succeeds(service: Service, client: httpx.Client) -> None:
    for _ in ROUNDS:
        address, _ = create_book(client)
        delete(address)(client)
        responses = run_concurrently(service, [restore(address)] * 6)
        assert count_statuses(responses) == {201: 1, 409: 5}
        assert client.get(address).json()["version"] == 3
        assert read_history(service, address) == [Change.Kind.CREATED, Change.Kind.DELETED, Change.Kind.RESTORED]


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


def test_restorations_and_deletions_take_turns(service: Service, client: httpx.Client) -> None:
    address, _ = create_book(client)
    for _ in ROUNDS:
        responses = run_concurrently(service, [*[restore(address)] * 4, *[delete(address)] * 4])
        assert count_statuses(responses[:4]).keys() <= {201, 409}
        assert count_statuses(responses[4:]).keys() <= {204, 404, 409}
    first, *others = read_history(service, address)
    assert first == Change.Kind.CREATED
    assert set(others[::2]) == {Change.Kind.DELETED}
    assert set(others[1::2]) <= {Change.Kind.RESTORED}
    assert client.get(address).is_success is (len(others) % 2 == 0)


def test_one_of_many_changes_and_reversions_of_one_state_succeeds(service: Service, client: httpx.Client) -> None:
    for _ in ROUNDS:
        address, book = create_book(client)
        etag = patch(address, year=1)(client).headers["ETag"]
        responses = run_concurrently(
            service,
            [*[revert(address, 1, etag)] * 3, *(patch(address, etag, title=str(number)) for number in range(3))],
        )
        assert count_statuses(responses) == {200: 1, 412: 5}
        (success,) = [response for response in responses if response.is_success]
        after = client.get(address).json()
        assert after == success.json()
        assert (after["version"], after["year"] == book["year"]) == (3, after["title"] == book["title"])
        assert len(read_history(service, address)) == 3


def test_a_reversion_never_restores_a_deleted_book(service: Service, client: httpx.Client) -> None:
    for _ in ROUNDS:
        address, _ = create_book(client)
        patch(address, year=1)(client)
        deletion, *reversions = run_concurrently(service, [delete(address), *[revert(address, 1)] * 4])
        assert deletion.status_code == 204
        assert count_statuses(reversions).keys() <= {200, 404}
        assert parse_error(client.get(address)) == (404, "NOT_FOUND", [])
        kinds = read_history(service, address)
        assert (kinds[-1], kinds.count(Change.Kind.DELETED), len(kinds) <= 4) == (Change.Kind.DELETED, 1, True)


def test_reversions_and_changes_are_all_counted(service: Service, client: httpx.Client) -> None:
    address, book = create_book(client)
    patch(address, title="Emma")(client)
    calls = [revert(address, 1), *(patch(address, year=number) for number in range(5))]
    responses = run_concurrently(service, calls)
    assert count_statuses(responses) == {200: 6}
    after = client.get(address).json()
    # The reversion set the title back, whatever the years did meanwhile.
    assert (after["title"], after["version"]) == (book["title"], 8)
    assert len(read_history(service, address)) == 8


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
