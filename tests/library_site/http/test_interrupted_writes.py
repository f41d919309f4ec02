"""Writes that another change overtakes, or whose connection to PostgreSQL has ended."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event as Signal
from threading import Thread
from typing import Any

import pytest
from django.db import connection, transaction

from books import changes
from books.models import Book
from library_site.db.sql import fetch_all
from tests.support import book_audit
from tests.support.applications import ApplicationVariant
from tests.support.books import build_book
from tests.support.concurrency import wait_until
from tests.support.request_strategies import Request
from tests.support.small_library import NEW_BOOK, NOW, encode_body

pytestmark = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no connections that could end")


@contextmanager
def run_concurrent_change(change: Callable[[], object]) -> Iterator[None]:
    """Starts a change in another transaction before the block; commits it when the block waits for its lock."""
    start_signal = Signal()

    def change_slowly() -> None:
        with transaction.atomic():
            change()
            start_signal.set()
            wait_until(lambda: fetch_all("SELECT count(*) FROM pg_locks WHERE NOT granted") != [(0,)])
        connection.close()

    thread = Thread(target=change_slowly)
    thread.start()
    assert start_signal.wait(30)
    yield
    thread.join()


def add_book() -> None:
    changes.add_book(build_book(isbn="taken"), NOW)


def change_book() -> None:
    changes.apply_change(changes.lock_book(1), {"title": "Emma"}, NOW)


def remove_book() -> None:
    changes.delete_book(changes.lock_book(1), NOW)


EMMA = ("Emma", 1813, 2)
PRIDE = ("Pride and Prejudice", 1813, 1)
OVERTAKEN_CHANGES: list[Any] = [
    pytest.param(change_book, {"body": encode_body(year=1)}, "200 OK", ("Emma", 1, 3), id="another member"),
    pytest.param(change_book, {"body": encode_body(title="Emma")}, "200 OK", EMMA, id="the same"),
    pytest.param(
        change_book,
        {"body": encode_body(year=1), "headers": {"If-Match": '"v1-1-1"'}},
        "412 Precondition Failed",
        EMMA,
        id="with the ETag from before",
    ),
    pytest.param(remove_book, {"body": encode_body(year=1)}, "404 Not Found", None, id="of a deleted book"),
    pytest.param(add_book, {"body": encode_body(isbn="taken")}, "409 Conflict", PRIDE, id="to an isbn in use"),
]


@pytest.mark.parametrize(("first", "request_members", "status", "after"), OVERTAKEN_CHANGES)
def test_a_change_that_another_change_overtakes(
    variant: ApplicationVariant,
    first: Callable[[], object],
    request_members: dict[str, Any],
    status: str,
    after: tuple[str, int, int] | None,
) -> None:
    with run_concurrent_change(first):
        answer = variant.send(Request("PUT", "/books/1", **request_members))
    assert answer.status == status
    assert Book.objects.filter(pk=1).values_list("title", "year", "version").first() == after
    assert book_audit.count_events() == book_audit.count_changes()


def test_an_isbn_is_stored_once(variant: ApplicationVariant) -> None:
    with run_concurrent_change(add_book):
        answer = variant.send(Request("POST", "/books", body=encode_body(**build_book(isbn="taken"))))
    assert answer.status == "409 Conflict"
    assert Book.objects.filter(isbn="taken").count() == 1
    assert book_audit.count_events() == book_audit.count_changes()


@pytest.mark.parametrize(("method", "path"), [("PUT", "/books/2"), ("POST", "/books"), ("DELETE", "/books/2")])
def test_a_write_after_the_connection_was_closed(variant: ApplicationVariant, method: str, path: str) -> None:
    variant.send(Request("PUT", "/books/1", body=encode_body(year=1)))
    connection.connection.close()
    answer = variant.send(Request(method, path, body=NEW_BOOK if method != "DELETE" else b""))
    assert answer.status in ("200 OK", "201 Created")
    assert book_audit.count_events() == book_audit.count_changes()
