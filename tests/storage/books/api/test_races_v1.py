"""Many clients at once, against the served library."""

from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import connection

from tests.support.books import build_book
from tests.support.concurrency import count_statuses, run_concurrently
from tests.support.responses import parse_refusal
from tests.support.server import Service, copy_seeded_database, serve_library


def create_book(client: httpx.Client, **fields: Any) -> httpx.Response:
    return client.post("/api/books", json=build_book(**fields))


def change_book(client: httpx.Client, address: str, **fields: Any) -> httpx.Response:
    return client.put(address, json=fields)


def delete_book(client: httpx.Client, address: str) -> httpx.Response:
    return client.delete(address)


@pytest.fixture
def address(service: Service) -> str:
    """The address of a new book."""
    with service.open_client() as client:
        return create_book(client).headers["Location"]


@pytest.fixture
def other_address(service: Service) -> str:
    """The address of another new book."""
    with service.open_client() as client:
        return create_book(client).headers["Location"]


def read_book(service: Service, address: str) -> dict[str, Any]:
    with service.open_client() as client:
        book: dict[str, Any] = client.get(address).json()
        return book


def test_one_of_many_creations_of_one_isbn_succeeds(service: Service) -> None:
    isbn = build_book()["isbn"]
    responses = run_concurrently(service, [partial(create_book, isbn=isbn, title=str(number)) for number in range(6)])
    assert count_statuses(responses) == {201: 1, 409: 5}
    assert {tuple(parse_refusal(response)[1]) for response in responses if response.is_error} == {("detail",)}
    (book,) = [response.json() for response in responses if response.is_success]
    assert read_book(service, f"/api/books/{book['id']}") == book


def test_changes_of_different_fields_all_survive(service: Service, address: str) -> None:
    before = read_book(service, address)
    for number in range(4):
        changes: dict[str, Any] = {"title": f"T{number}", "author": f"A{number}", "year": number, "genre": f"G{number}"}
        responses = run_concurrently(
            service, [partial(change_book, address=address, **{name: changes[name]}) for name in changes]
        )
        assert count_statuses(responses) == {200: 4}
        assert read_book(service, address) == {**before, **changes}


def test_two_books_that_swap_their_isbns_never_share_one(service: Service, address: str, other_address: str) -> None:
    before = {book: read_book(service, book) for book in (address, other_address)}
    swaps = [
        partial(change_book, address=address, isbn=before[other_address]["isbn"]),
        partial(change_book, address=other_address, isbn=before[address]["isbn"]),
    ]
    for _ in range(3):
        assert count_statuses(run_concurrently(service, swaps)) == {409: 2}
    assert {book: read_book(service, book) for book in (address, other_address)} == before


def test_one_of_many_changes_to_one_isbn_succeeds(service: Service) -> None:
    with service.open_client() as client:
        addresses = [create_book(client).headers["Location"] for _ in range(8)]
    isbn = build_book()["isbn"]
    responses = run_concurrently(service, [partial(change_book, address=address, isbn=isbn) for address in addresses])
    assert count_statuses(responses) == {200: 1, 409: 7}
    assert [read_book(service, address)["isbn"] for address in addresses].count(isbn) == 1


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one isolation")
def test_a_serialization_failure_is_answered_409(tmp_path: Path) -> None:
    with copy_seeded_database(tmp_path) as url:
        serializable_url = f"{url}?options=-c%20default_transaction_isolation%3Dserializable"
        with serve_library(tmp_path, serializable_url) as service:
            for _ in range(5):
                responses = run_concurrently(
                    service, [partial(change_book, address="/api/books/1", title=f"T{number}") for number in range(8)]
                )
                assert count_statuses(responses).keys() <= {200, 409}
                assert 200 in count_statuses(responses)


def test_one_of_many_deletions_succeeds(service: Service, address: str) -> None:
    responses = run_concurrently(service, [partial(delete_book, address=address)] * 8)
    assert count_statuses(responses) == {200: 1, 404: 7}
    assert read_book(service, address) == {"detail": "Book not found"}


def test_one_of_many_changes_of_one_state_succeeds(service: Service, address: str) -> None:
    # The compiled path takes no coded body. A year that the book has already would leave its state as it is.
    for years, others in ((range(12), {}), (range(12, 24), {"Content-Encoding": "identity"})):
        with service.open_client() as client:
            headers = {"If-Match": client.get(address).headers["ETag"], **others}
        responses = run_concurrently(
            service,
            [partial(httpx.Client.put, url=address, json={"year": year}, headers=headers) for year in years],
        )
        assert count_statuses(responses) == {200: 1, 412: 11}
        assert [response.json() for response in responses if response.is_success] == [read_book(service, address)]


def test_one_of_a_change_and_a_deletion_of_one_state_succeeds(service: Service) -> None:
    for _ in range(5):
        with service.open_client() as client:
            creation = create_book(client)
        address, headers = creation.headers["Location"], {"If-Match": creation.headers["ETag"]}
        responses = run_concurrently(
            service,
            [
                partial(httpx.Client.put, url=address, json={"year": 2000}, headers=headers),
                partial(httpx.Client.delete, url=address, headers=headers),
            ],
        )
        assert [response.status_code for response in responses] in ([200, 412], [404, 200])
