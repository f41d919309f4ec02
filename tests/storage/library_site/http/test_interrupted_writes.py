"""Writes that another change overtakes, or whose connection to PostgreSQL ends at any point.

A write is done once and announced once, or not at all. Its own first attempt never makes it a conflict.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from threading import Event as Signal
from threading import Thread
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from books.history import actors
from books.models import Actor, Book
from books.writing import changes
from library_site.db.sql import fetch_all
from tests.support import book_audit
from tests.support.applications import Answer, ApplicationVariant
from tests.support.books import ACTOR, build_book
from tests.support.credentials import Credentials
from tests.support.database_proxy import (
    DatabaseProxy,
    Fault,
    connect_through_proxy,
    end_session,
    has_session,
)
from tests.support.requests import Request
from tests.support.small_library import NEW_BOOK, NOW, VERSION_2, encode_body, restore_books
from tests.support.waiting import wait_until
from webhooks.models import Delivery

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
    changes.create_book(build_book(isbn="taken"), ACTOR, NOW)


def change_book() -> None:
    changes.change_book(1, {"title": "Emma"}, None, ACTOR, NOW)


def remove_book() -> None:
    changes.delete_book(1, None, ACTOR, NOW)


EMMA = ("Emma", 1813, 2)
PRIDE = ("Pride and Prejudice", 1813, 1)
# The change that is first, the body of the other, its response, and what book 1 is afterwards.
OVERTAKEN_CHANGES: list[Any] = [
    (change_book, {"year": 1}, "200 OK", ("Emma", 1, 3)),
    # The history and the event say what it was before: Emma.
    (change_book, {"title": "Lady Susan"}, "200 OK", ("Lady Susan", 1813, 3)),
    (change_book, {"title": "Emma"}, "200 OK", EMMA),
    (remove_book, {"year": 1}, "404 Not Found", None),
    (add_book, {"isbn": "taken"}, "409 Conflict", PRIDE),
]


def test_a_change_that_another_change_overtakes(variant: ApplicationVariant) -> None:
    for first, fields, status, after in OVERTAKEN_CHANGES:
        restore_books()
        check_overtaken(variant, first, Request("PUT", "/books/1", body=encode_body(**fields)), status, after)
    restore_books()
    conditional = Request("PUT", "/books/1", headers={"If-Match": '"v1-1-1"'}, body=encode_body(year=1))
    check_overtaken(variant, change_book, conditional, "412 Precondition Failed", EMMA)
    restore_books()
    creation = Request("POST", "/books", body=encode_body(**build_book(isbn="taken")))
    check_overtaken(variant, add_book, creation, "409 Conflict", PRIDE)


def check_overtaken(
    variant: ApplicationVariant, first: Callable[[], object], request: Request, status: str, after: object
) -> None:
    with run_concurrent_change(first):
        response = variant.send(request)
    assert response.status == status
    assert Book.objects.filter(pk=1).values_list("title", "year", "version").first() == after
    assert book_audit.count_events() == book_audit.count_changes()
    assert book_audit.list_history() == book_audit.list_changes()


UNAVAILABLE = "503 Service Unavailable"
POST = Request("POST", "/books", body=NEW_BOOK)
# A second attempt would be refused: the first has changed the state that it asks for.
PUT = Request("PUT", "/books/1", headers={"If-Match": '"v1-1-1"'}, body=NEW_BOOK)
PATCH = Request("PATCH", "/books/1", VERSION_2, headers={"If-Match": '"v2-1-1"'}, body=encode_body(year=1))
DELETE = Request("DELETE", "/books/1", VERSION_2)


def close_connection() -> None:
    connection.connection.close()


def terminate_session() -> None:
    # In one transaction, the view of the sessions would never change.
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as control:
        end_session(control, connection.connection.info.backend_pid)


@pytest.mark.parametrize("lose_connection", [close_connection, terminate_session])
def test_a_write_after_the_connection_was_closed(
    variant: ApplicationVariant, lose_connection: Callable[[], None]
) -> None:
    for write in (PUT, POST, DELETE):
        restore_books()
        variant.send(Request("GET", "/books/1"))
        lose_connection()
        response = variant.send(write)
        assert response.status in ("200 OK", "201 Created", "204 No Content")
        assert book_audit.count_events() == book_audit.count_changes()


@pytest.fixture
def proxy(library: Credentials, compiled: ApplicationVariant) -> Iterator[DatabaseProxy]:
    """A proxy to the database, behind the application with the compiled path."""
    with connect_through_proxy() as proxy, compiled.override_settings():
        yield proxy


def break_every_statement(
    proxy: DatabaseProxy, fault: Fault, send: Callable[[], Answer], prepare: Callable[[], object] = restore_books
) -> Iterator[Answer]:
    """Sends a request again and again: each time another statement has the fault.

    Yields the responses. The last is to a request without a fault: it has no more statements.
    """
    for number in count(1):
        connection.close()
        prepare()
        proxy.prepare({number: fault})
        response = send()
        is_broken = not proxy.faults
        proxy.prepare({})
        yield response
        if not is_broken:
            return


def check_broken_writes(compiled: ApplicationVariant, responses: Iterable[Answer], fault: Fault) -> None:
    outcomes = []
    for response in responses:
        assert response.get_header("Retry-After") == ("1" if response.status == UNAVAILABLE else None)
        # The next request gets a new connection.
        assert compiled.send(Request("GET", "/books/2")).status == "200 OK"
        outcomes.append((response.status, count_complete_changes()))
    *broken, unbroken = outcomes
    assert unbroken in [("200 OK", 1), ("201 Created", 1), ("204 No Content", 1)]
    # What was executed may be answered 503, once: that of the statement that committed it.
    assert set(broken) <= {unbroken, (UNAVAILABLE, 0), (UNAVAILABLE, 1)}
    assert broken.count((UNAVAILABLE, 1)) == (fault is Fault.UNANSWERED)


def count_complete_changes() -> int:
    """Returns how often books changed. Each change must have an event with a delivery, and a row in the history."""
    changes = book_audit.count_changes()
    assert book_audit.count_events() == changes
    assert Delivery.objects.count() == changes.total()
    assert book_audit.list_history() == book_audit.list_changes()
    return changes.total()


@pytest.mark.parametrize(
    ("write", "fault"),
    [
        *((POST._replace(spelling=VERSION_2, credential="key"), fault) for fault in Fault),
        (PUT, Fault.UNSENT),
        *((write, Fault.UNANSWERED) for write in (PUT, DELETE)),
        # What was executed without a condition would be executed twice.
        (PUT._replace(headers={}), Fault.UNANSWERED),
        (PATCH._replace(credential="token"), Fault.UNANSWERED),
    ],
)
def test_a_connection_that_ends_at_any_statement(
    proxy: DatabaseProxy, compiled: ApplicationVariant, library: Credentials, write: Request, fault: Fault
) -> None:
    # The process remembers the actor afterwards.
    compiled.send(write, library[write.credential])
    responses = break_every_statement(proxy, fault, lambda: compiled.send(write, library[write.credential]))
    check_broken_writes(compiled, responses, fault)


def test_a_connection_that_ends_while_an_actor_is_added(
    proxy: DatabaseProxy, compiled: ApplicationVariant, library: Credentials
) -> None:
    def forget_and_restore() -> None:
        actors.remembered_actors.clear()
        Actor.objects.all().delete()
        restore_books()

    fault = Fault.UNANSWERED
    responses = break_every_statement(proxy, fault, lambda: compiled.send(POST, library["key"]), forget_and_restore)
    check_broken_writes(compiled, responses, fault)


def test_a_connection_that_ends_after_a_change_was_overtaken(
    proxy: DatabaseProxy, compiled: ApplicationVariant
) -> None:
    def overtake() -> None:
        """Changes book 1 without the library, and without a trace in the ledger."""
        proxy.control.execute("UPDATE books_book SET version = version + 1 WHERE id = 1")
        proxy.control.execute("DELETE FROM ledger")

    def restore_and_wait() -> None:
        restore_books()
        proxy.call_before(b"UPDATE books_book", overtake)

    # With a condition, the book is read before it is written.
    write = PUT._replace(headers={"If-Match": "*"})
    # The process remembers the actor afterwards.
    compiled.send(write)
    responses = break_every_statement(proxy, Fault.UNANSWERED, lambda: compiled.send(write), restore_and_wait)
    check_broken_writes(compiled, responses, Fault.UNANSWERED)


def test_a_creation_with_an_idempotency_key_may_be_sent_again(
    proxy: DatabaseProxy, compiled: ApplicationVariant
) -> None:
    write = POST._replace(spelling=VERSION_2, headers={"Idempotency-Key": "once"})
    compiled.send(write)
    for response in break_every_statement(proxy, Fault.UNANSWERED, lambda: compiled.send(write)):
        assert response.status in ("201 Created", UNAVAILABLE)
        connection.close()
        # A session that PostgreSQL has not yet ended could hold the key.
        wait_until(lambda: not has_other_sessions(proxy))
        assert compiled.send(write).status == "201 Created"
        assert count_complete_changes() == 1


@pytest.mark.parametrize(
    ("read", "fault"),
    [
        (Request("GET", "/books", credential="key"), Fault.TERMINATED),
        (Request("GET", "/books"), Fault.UNANSWERED),
        (Request("GET", "/books/1", credential="key"), Fault.UNANSWERED),
        (Request("GET", "/books/1"), Fault.UNSENT),
    ],
)
def test_a_read_of_the_compiled_path_is_tried_again(
    proxy: DatabaseProxy, compiled: ApplicationVariant, library: Credentials, read: Request, fault: Fault
) -> None:
    send = partial(compiled.send, read, library[read.credential])
    *responses, unbroken = break_every_statement(proxy, fault, send)
    assert len(responses) > 1
    assert {response.body for response in responses} == {unbroken.body}


@pytest.mark.parametrize(("write", "is_terminated"), [(POST, True), (PUT, False), (DELETE, True), (DELETE, False)])
def test_a_connection_that_ends_while_a_statement_runs(
    proxy: DatabaseProxy, compiled: ApplicationVariant, write: Request, is_terminated: bool
) -> None:
    with psycopg.connect(**proxy.parameters) as blocker, ThreadPoolExecutor(1) as pool:
        # All three requests wait for the end of this transaction.
        blocker.execute("UPDATE books_book SET isbn = '9790000000000' WHERE id = 1")
        ended_session = pool.submit(end_waiting_session, proxy, is_terminated)
        response = compiled.send(write)
        blocker.rollback()
    wait_until(lambda: not has_session(proxy.control, ended_session.result()))
    assert (response.status, response.get_header("Retry-After")) == (UNAVAILABLE, "1")
    # PostgreSQL does not notice that the client has gone before the statement ends. DELETE still has to commit.
    assert count_complete_changes() == (not is_terminated and write is not DELETE)


def end_waiting_session(proxy: DatabaseProxy, is_terminated: bool) -> int:
    """Terminates the session that waits for a lock, or ends its connection. Returns its id."""
    waiting_sql = "SELECT DISTINCT pid FROM pg_locks WHERE NOT granted"
    wait_until(lambda: proxy.control.execute(waiting_sql).rowcount == 1)
    [(pid,)] = proxy.control.execute(waiting_sql)
    if is_terminated:
        proxy.terminate(pid)
    else:
        proxy.disconnect()
    return int(pid)


def has_other_sessions(proxy: DatabaseProxy) -> bool:
    sessions_sql = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return bool(proxy.control.execute(sessions_sql).rowcount)
