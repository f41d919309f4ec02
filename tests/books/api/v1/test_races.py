"""Many clients at once, against the served library."""

from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import connection

from tests.support.books import new_book
from tests.support.concurrency import at_once, statuses
from tests.support.responses import refusal
from tests.support.serving import Service, seeded_database, serving


def create(client: httpx.Client, **members: Any) -> httpx.Response:
    return client.post("/api/books", json=new_book(**members))


def change(client: httpx.Client, address: str, **members: Any) -> httpx.Response:
    return client.put(address, json=members)


def delete(client: httpx.Client, address: str) -> httpx.Response:
    return client.delete(address)


@pytest.fixture
def address(service: Service) -> str:
    """A new book's."""
    with service.client() as client:
        return create(client).headers["Location"]


@pytest.fixture
def other(service: Service) -> str:
    """Another new book's."""
    with service.client() as client:
        return create(client).headers["Location"]


def stored(service: Service, address: str) -> dict[str, Any]:
    with service.client() as client:
        book: dict[str, Any] = client.get(address).json()
        return book


def test_one_of_many_creations_of_one_isbn_succeeds(service: Service) -> None:
    isbn = new_book()["isbn"]
    answers = at_once(service, [partial(create, isbn=isbn, title=str(number)) for number in range(12)])
    assert statuses(answers) == {201: 1, 409: 11}
    assert {tuple(refusal(answer)[1]) for answer in answers if answer.is_error} == {("detail",)}
    (created,) = [answer.json() for answer in answers if answer.is_success]
    assert stored(service, f"/api/books/{created['id']}") == created


def test_changes_of_different_members_all_survive(service: Service, address: str) -> None:
    before = stored(service, address)
    for number in range(15):
        wanted: dict[str, Any] = {"title": f"T{number}", "author": f"A{number}", "year": number, "genre": f"G{number}"}
        answers = at_once(service, [partial(change, address=address, **{name: wanted[name]}) for name in wanted])
        assert statuses(answers) == {200: 4}
        assert stored(service, address) == {**before, **wanted}


def test_two_books_never_swap_their_way_to_one_isbn(service: Service, address: str, other: str) -> None:
    before = {book: stored(service, book) for book in (address, other)}
    for _ in range(3):
        answers = at_once(
            service,
            [
                partial(change, address=address, isbn=before[other]["isbn"]),
                partial(change, address=other, isbn=before[address]["isbn"]),
            ],
        )
        assert statuses(answers) == {409: 2}
        assert {book: stored(service, book) for book in (address, other)} == before


def test_one_of_many_changes_to_one_isbn_succeeds(service: Service) -> None:
    with service.client() as client:
        addresses = [create(client).headers["Location"] for _ in range(8)]
    isbn = new_book()["isbn"]
    answers = at_once(service, [partial(change, address=address, isbn=isbn) for address in addresses])
    assert statuses(answers) == {200: 1, 409: 7}
    assert [stored(service, address)["isbn"] for address in addresses].count(isbn) == 1


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one isolation")
def test_under_a_stricter_isolation_who_gives_way_is_told_of_the_change(tmp_path: Path) -> None:
    with seeded_database(tmp_path) as url:
        stricter = f"{url}?options=-c%20default_transaction_isolation%3Dserializable"
        with serving(tmp_path, stricter) as service:
            for _ in range(5):
                answers = at_once(
                    service, [partial(change, address="/api/books/1", title=f"T{number}") for number in range(8)]
                )
                assert statuses(answers).keys() <= {200, 409}
                assert 200 in statuses(answers)


def test_one_of_many_deletions_succeeds(service: Service, address: str) -> None:
    answers = at_once(service, [partial(delete, address=address)] * 8)
    assert statuses(answers) == {200: 1, 404: 7}
    assert stored(service, address) == {"detail": "Book not found"}


def test_a_change_never_brings_a_deleted_book_back(service: Service) -> None:
    for _ in range(10):
        with service.client() as client:
            address = create(client).headers["Location"]
        changes = [partial(change, address=address, year=number) for number in range(5)]
        *changed, deleted = at_once(service, [*changes, partial(delete, address=address)])
        assert deleted.status_code == 200
        assert statuses(changed).keys() <= {200, 404, 409}
        assert stored(service, address) == {"detail": "Book not found"}


def test_one_of_many_changes_of_one_state_succeeds(service: Service, address: str) -> None:
    with service.client() as client:
        headers = {"If-Match": client.get(address).headers["ETag"]}
    answers = at_once(
        service,
        [partial(httpx.Client.put, url=address, json={"year": number}, headers=headers) for number in range(12)],
    )
    assert statuses(answers) == {200: 1, 412: 11}
    assert [answer.json() for answer in answers if answer.is_success] == [stored(service, address)]


def test_one_of_a_change_and_a_deletion_of_one_state_succeeds(service: Service) -> None:
    for _ in range(5):
        with service.client() as client:
            created = create(client)
        address, headers = created.headers["Location"], {"If-Match": created.headers["ETag"]}
        answers = at_once(
            service,
            [
                partial(httpx.Client.put, url=address, json={"year": 2000}, headers=headers),
                partial(httpx.Client.delete, url=address, headers=headers),
            ],
        )
        assert [answer.status_code for answer in answers] in ([200, 412], [404, 200])


class Work:
    """A client's rounds of creating, reading, changing and deleting, and what it was told."""

    def __init__(self, shared: str, isbn: str, first_year: int) -> None:
        self.shared, self.isbn, self.first_year = shared, isbn, first_year
        self.books: dict[str, dict[str, Any]] = {}
        self.answers: list[httpx.Response] = []

    def __call__(self, client: httpx.Client) -> "Work":
        self.told(create(client, isbn=self.isbn))
        for year in range(self.first_year, self.first_year + 8):
            address = self.told(create(client)).headers["Location"]
            self.told(client.get(address))
            self.books[address] = self.told(change(client, address, year=year, author="Ünal")).json()
            self.told(change(client, self.shared, year=year))
            self.told(client.get("/api/books", params={"author": "ünal", "limit": 500}))
            if year % 2:
                self.books[address] = {"detail": "Book not found"}
                self.told(client.delete(address))
        return self

    def told(self, answer: httpx.Response) -> httpx.Response:
        self.answers.append(answer)
        return answer


def test_every_acknowledged_state_is_there_at_the_end(service: Service, address: str) -> None:
    isbn = new_book()["isbn"]
    clients = at_once(service, [Work(address, isbn, first_year=100 * number) for number in range(16)])
    told = statuses(answer for client in clients for answer in client.answers)
    assert told == {201: 16 * 8 + 1, 409: 15, 200: 16 * (8 * 4 + 4)}
    for client in clients:
        assert {address: stored(service, address) for address in client.books} == client.books
    assert stored(service, address)["year"] in [100 * number + 7 for number in range(16)]
