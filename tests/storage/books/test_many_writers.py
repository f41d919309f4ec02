"""Many writers of the same books at once: every acknowledged change is one version and one event."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import httpx

from tests.support.books import build_book
from tests.support.concurrency import count_statuses, run_concurrently
from tests.support.event_replay import replay_events
from tests.support.server import Service

WRITER_COUNT = 16
CHANGES_PER_WRITER = 3
BOOKS = "/api/v2/books"

Answers = list[httpx.Response]


def create_book(service: Service, **fields: Any) -> int:
    """Returns the id of a new book."""
    with service.open_client() as client:
        return int(client.post(BOOKS, json=build_book(**fields)).json()["id"])


def run_writers(service: Service, writers: Sequence[Callable[[httpx.Client], Answers]]) -> Answers:
    return [response for responses in run_concurrently(service, writers) for response in responses]


def change_years(client: httpx.Client, pk: int, number: int) -> Answers:
    """Sends years that no other writer sends, in both versions."""
    years = range(CHANGES_PER_WRITER * number, CHANGES_PER_WRITER * (number + 1))
    return [
        client.put(f"/api/books/{pk}", json={"year": year})
        if year % 2
        else client.patch(f"{BOOKS}/{pk}", json={"year": year})
        for year in years
    ]


def test_every_acknowledged_change_is_one_version_and_one_event(service: Service) -> None:
    pk = create_book(service, year=-1)
    responses = run_writers(service, [partial(change_years, pk=pk, number=number) for number in range(WRITER_COUNT)])
    change_count = WRITER_COUNT * CHANGES_PER_WRITER
    assert count_statuses(responses) == {200: change_count}
    assert len({response.json()["year"] for response in responses}) == change_count
    kinds, book = replay_events(service, pk)
    assert kinds == ["book.created"] + ["book.updated"] * change_count
    with service.open_client() as client:
        assert client.get(f"{BOOKS}/{pk}").json() == book


def delete_book(client: httpx.Client, pk: int) -> Answers:
    return [client.delete(f"/api/books/{pk}")]


def add_book(client: httpx.Client, isbn: str) -> Answers:
    return [client.post("/api/books", json=build_book(isbn=isbn))]


def test_a_deletion_among_changes_is_the_last_event(service: Service) -> None:
    isbn = build_book()["isbn"]
    pk = create_book(service, isbn=isbn)
    changes = [partial(change_years, pk=pk, number=number) for number in range(WRITER_COUNT // 2)]
    deletions, additions = [partial(delete_book, pk=pk)] * 4, [partial(add_book, isbn=isbn)] * 4
    responses = run_concurrently(service, [*changes, *deletions, *additions])
    changed, deleted, added = (
        count_statuses(response for part in parts for response in part)
        for parts in (responses[:-8], responses[-8:-4], responses[-4:])
    )
    assert changed.keys() <= {200, 404}
    assert deleted == {200: 1, 404: 3}
    # The isbn is free as soon as the book is deleted.
    assert added in ({409: 4}, {201: 1, 409: 3})
    assert replay_events(service, pk).kinds == ["book.created", *["book.updated"] * changed[200], "book.deleted"]
    assert service.fetch_all(f"SELECT count(*) FROM books_book WHERE isbn = '{isbn}'") == [(added[201],)]  # noqa: S608  # our own isbn
