"""Many clients of version 2 at once, against the served library."""

from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.concurrency import count_statuses, run_concurrently
from tests.support.pages import parse_error
from tests.support.server import Service

BOOKS = "/api/v2/books"
BULK = "/api/v2/books/bulk"


def create_book(service: Service) -> httpx.Response:
    with service.open_client() as client:
        return client.post(BOOKS, json=build_book())


def fetch_book(service: Service, address: str) -> httpx.Response:
    with service.open_client() as client:
        return client.get(address)


def patch(client: httpx.Client, address: str, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
    return client.patch(address, json=fields, headers=headers)


def send_bulk(client: httpx.Client, operations: list[dict[str, Any]]) -> httpx.Response:
    return client.post(BULK, json={"operations": operations})


@pytest.fixture
def creation(service: Service) -> httpx.Response:
    """The response to the creation of a book."""
    return create_book(service)


@pytest.fixture
def address(creation: httpx.Response) -> str:
    return creation.headers["Location"]


def test_equal_changes_at_once_are_one_version(service: Service, address: str) -> None:
    responses = run_concurrently(service, [partial(patch, address=address, year=2000)] * 12)
    assert count_statuses(responses) == {200: 12}
    assert {response.json()["version"] for response in responses} == {2}
    assert len({response.headers["ETag"] for response in responses}) == 1


def test_one_of_many_bulks_for_one_version_succeeds(service: Service, creation: httpx.Response, address: str) -> None:
    operations = [
        {"op": "update", "id": creation.json()["id"], "version": 1, "book": {"year": number}} for number in range(12)
    ]
    responses = run_concurrently(service, [partial(send_bulk, operations=[operation]) for operation in operations])
    assert count_statuses(responses) == {200: 1, 409: 11}
    assert fetch_book(service, address).json()["version"] == 2


def test_bulks_that_change_books_in_opposite_order_both_succeed(service: Service) -> None:
    ids = [create_book(service).json()["id"] for _ in range(10)]
    for round_ in range(3):
        operations = [{"op": "update", "id": pk, "book": {"year": round_}} for pk in ids]
        reversed_operations = [{"op": "update", "id": pk, "book": {"genre": f"G{round_}"}} for pk in reversed(ids)]
        responses = run_concurrently(
            service, [partial(send_bulk, operations=operations), partial(send_bulk, operations=reversed_operations)]
        )
        assert count_statuses(responses) == {200: 2}
    books = [fetch_book(service, f"{BOOKS}/{pk}").json() for pk in ids]
    assert {(book["year"], book["genre"], book["version"]) for book in books} == {(2, "G2", 7)}


def test_one_of_two_bulks_that_create_isbns_in_opposite_order_succeeds(service: Service) -> None:
    for _ in range(2):
        operations = [{"op": "create", "book": build_book()} for _ in range(20)]
        responses = run_concurrently(
            service, [partial(send_bulk, operations=operations), partial(send_bulk, operations=operations[::-1])]
        )
        assert count_statuses(responses) == {200: 1, 409: 1}
        assert {parse_error(response)[1] for response in responses if response.is_error} == {"CONFLICT"}
        (results,) = [response.json()["results"] for response in responses if response.is_success]
        assert len({result["id"] for result in results}) == 20


def test_a_bulk_and_a_single_change_wait_for_each_other(service: Service) -> None:
    books = [create_book(service).json() for _ in range(10)]
    operations = [{"op": "update", "id": book["id"], "book": {"title": "Bulk"}} for book in reversed(books)]
    singles = [partial(patch, address=f"{BOOKS}/{book['id']}", year=2000) for book in books]
    responses = run_concurrently(service, [partial(send_bulk, operations=operations), *singles])
    assert count_statuses(responses) == {200: 11}
    books_after = [fetch_book(service, f"{BOOKS}/{book['id']}").json() for book in books]
    assert {(book["title"], book["year"], book["version"]) for book in books_after} == {("Bulk", 2000, 3)}


@pytest.mark.parametrize("method", ["DELETE", "bulk"])
def test_a_change_never_restores_a_deleted_book(service: Service, method: str) -> None:
    for _ in range(4):
        creation = create_book(service)
        address, pk = creation.headers["Location"], creation.json()["id"]
        deletion = {
            "DELETE": partial(httpx.Client.delete, url=address),
            "bulk": partial(send_bulk, operations=[{"op": "delete", "id": pk}]),
        }[method]
        changes = [partial(patch, address=address, year=number) for number in range(4)]
        bulk_change = partial(send_bulk, operations=[{"op": "update", "id": pk, "book": {"genre": "Bulk"}}])
        deletion_response, bulk_response, *change_responses = run_concurrently(
            service, [deletion, bulk_change, *changes]
        )
        assert deletion_response.is_success
        assert bulk_response.status_code in (200, 422)
        assert count_statuses(change_responses).keys() <= {200, 404}
        assert parse_error(fetch_book(service, address)) == (404, "NOT_FOUND", [])


def test_a_dry_run_does_not_block_other_writers(service: Service, address: str, creation: httpx.Response) -> None:
    operations = [{"op": "update", "id": creation.json()["id"], "book": {"title": "Rehearsed"}}]
    rehearsal = partial(httpx.Client.post, url=f"{BULK}?dry_run=true", json={"operations": operations})
    changes = [partial(patch, address=address, year=number) for number in range(6)]
    responses = run_concurrently(service, [*[rehearsal] * 6, *changes])
    assert count_statuses(responses) == {200: 12}
    book = fetch_book(service, address).json()
    assert (book["title"], book["version"]) == (creation.json()["title"], 7)
