"""With the compiled path and without it, the application gives the same answers and stores the same rows, to the byte.

Writes are committed, as in production: inside the transaction of a test, the compiled path would not use its own
statements on PostgreSQL. `--hypothesis-profile=long` tries 20,000 examples in each test.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event as Signal
from threading import Thread
from typing import Any, NamedTuple

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.signals import request_started
from django.db import connection, transaction
from hypothesis import event, example, given
from hypothesis import strategies as st

from books import changes
from books.models import Book, StoredResponse
from library_site.db.sql import execute, fetch_all, raw_connection
from oauth.models import APIKey
from tests.support import book_audit
from tests.support.applications import Answer, ApplicationVariant
from tests.support.books import build_book
from tests.support.concurrency import wait_until
from tests.support.endpoints import create_endpoint
from tests.support.forged_tokens import build_claims, forge_token
from tests.support.oauth_flows import build_bearer_header, create_key_header
from tests.support.request_strategies import (
    BOOKS,
    PROTECTION_MODES,
    STORED_ISBNS,
    Request,
    VersionSpelling,
    choose_rarely,
    comparison_settings,
    requests,
)
from webhooks.models import Delivery, Event

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
MOMENTS = [NOW, NOW.replace(microsecond=120_300)]
NEW_BOOK = json.dumps(build_book(isbn="9790000000000")).encode()
VERSION_2 = VersionSpelling("/api/v2")
PLAIN_REQUESTS = [
    Request(method, path, spelling, query, headers, credential, body)
    for spelling in (VersionSpelling("/api"), VERSION_2)
    for credential in ("none", "key", "token")
    for method, path, query, headers, body in [
        ("GET", "/books", "", {}, b""),
        ("GET", "/books", "author=aus&genre=rom", {}, b""),
        ("GET", "/books/1", "", {}, b""),
        ("GET", "/books/1", "", {"If-None-Match": "*"}, b""),
        ("POST", "/books", "", {}, NEW_BOOK),
        ("PUT", "/books/1", "", {"If-Match": "*"}, NEW_BOOK),
        ("DELETE", "/books/1", "", {}, b""),
    ]
] + [
    Request("GET", "/books", VERSION_2, "sort=-year&limit=1&fields=id,title&q=a&year_min=1800"),
    Request("PATCH", "/books/1", VERSION_2, body=b'{"year": 2000}'),
]
# The tables that requests write to, children before their parents.
TABLES = ("webhooks_delivery", "webhooks_event", "books_keptanswer", "books_book")
# Makes new books have the same ids in every run.
RESET_BOOK_IDS_SQL = {
    "postgresql": "SELECT setval('books_book_id_seq', 100)",
    "sqlite": "UPDATE sqlite_sequence SET seq = 100 WHERE name = 'books_book'",
}

on_postgresql = pytest.mark.skipif(connection.vendor == "sqlite", reason="On SQLite a writer waits before it reads")
# Headers by the name of the credential.
Credentials = Mapping[str, Mapping[str, str]]
Clock = Callable[[datetime], None]


class Session(NamedTuple):
    """Requests that are sent one after the other, at one time, to a library with this LIBRARY_ACCESS."""

    requests: Sequence[Request]
    access: str
    now: datetime


class StoredRows(NamedTuple):
    """The rows that requests have written."""

    books: list[Any]
    events: list[Any]
    deliveries: list[Any]
    answers: list[Any]
    keys: list[Any]


single_requests = st.lists(requests, min_size=1, max_size=1)
# The first request is repeated at the end: with an Idempotency-Key the stored response answers it.
request_lists = st.lists(requests, min_size=1, max_size=3).map(lambda items: [*items, items[0]])
sessions = st.builds(
    Session,
    choose_rarely(single_requests, request_lists, 4),
    choose_rarely(st.just("open"), st.sampled_from(PROTECTION_MODES)),
    st.sampled_from(MOMENTS),
)


@pytest.fixture(scope="session")
def compiled(static_files: None) -> ApplicationVariant:
    return ApplicationVariant(compiled=True)


@pytest.fixture(scope="session")
def plain(static_files: None) -> ApplicationVariant:
    return ApplicationVariant(compiled=False)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Returns a function that sets the time of the library."""
    return lambda now: monkeypatch.setattr("django.utils.timezone.now", lambda: now)


@pytest.fixture
def library(transactional_db: None, compiled: ApplicationVariant) -> Credentials:
    """Stores BOOKS and an endpoint, and returns the credentials."""
    create_endpoint()
    owner = User.objects.create_user("owner", is_superuser=True)
    key, token = create_key_header(owner), build_bearer_header(forge_token(build_claims(owner.pk)))
    restore_books()
    credentials = {
        "none": {},
        "key": key,
        "token": token,
        "reader's token": build_bearer_header(forge_token(build_claims(owner.pk, scope="read"))),
        "both": {**key, **token},
        "no key": {"X-API-Key": "nonsense"},
        "no token": build_bearer_header("nonsense"),
        "no Bearer": {"Authorization": "Basic nonsense"},
    }
    if not compiled.has_learned:
        teach_headers(compiled, credentials)
    restore_books()
    return credentials


def teach_headers(compiled: ApplicationVariant, credentials: Credentials) -> None:
    """Sends the plain requests: Django answers each the first time."""
    with compiled.override_settings():
        for request in PLAIN_REQUESTS:
            restore_books()
            compiled.send(request, credentials[request.credential])
    compiled.has_learned = True


def restore_books() -> None:
    """Deletes what requests have written, stores BOOKS and clears the ledger."""
    with transaction.atomic():
        for table in TABLES:
            execute(f"DELETE FROM {table}")  # noqa: S608  # names of our own tables
        APIKey.objects.update(last_used_at=None)
        Book.objects.bulk_create(Book(pk=number, **book, updated_at=NOW) for number, book in enumerate(BOOKS, 1))
        execute(RESET_BOOK_IDS_SQL[connection.vendor])
        book_audit.clear_ledger()


@pytest.mark.parametrize("plain_request", PLAIN_REQUESTS)
def test_plain_requests_do_not_reach_django(
    compiled: ApplicationVariant, library: Credentials, plain_request: Request
) -> None:
    django_requests: list[Any] = []

    def record_request(**_: Any) -> None:
        django_requests.append(plain_request)

    request_started.connect(record_request)
    restore_books()
    with compiled.override_settings():
        compiled.send(plain_request, library[plain_request.credential])
    request_started.disconnect(record_request)
    assert django_requests == []


@comparison_settings
@example(Session([Request("GET", "/books")], "protected", NOW))
@example(Session([Request("GET", "/books", query="author=%25")], "open", NOW))
@example(Session([Request("GET", "/books", query="author=é".encode().decode("latin-1"))], "open", NOW))
@given(session=sessions)
def test_both_variants_answer_and_store_the_same(
    compiled: ApplicationVariant, plain: ApplicationVariant, library: Credentials, clock: Clock, session: Session
) -> None:
    clock(session.now)
    expected = run_session(plain, session, library)
    for answer in expected[0]:
        event(answer.status)
    assert run_session(compiled, session, library) == expected


def run_session(
    variant: ApplicationVariant, session: Session, credentials: Credentials
) -> tuple[list[Answer], StoredRows]:
    """Sends the requests and returns the answers, and the rows that are stored at the end."""
    restore_books()
    with variant.override_settings(LIBRARY_ACCESS=session.access):
        # Without a raw connection both variants would send the same statements to PostgreSQL.
        assert bool(raw_connection(connection)) == (variant.compiled and connection.vendor == "postgresql")
        answers = list(send_requests(variant, session.requests, credentials))
    assert book_audit.count_events() == book_audit.count_changes()
    return answers, read_stored_rows()


def send_requests(
    variant: ApplicationVariant, requests: Sequence[Request], credentials: Credentials
) -> Iterator[Answer]:
    """Yields the answer of each request; a GET that answers an ETag is sent again with If-None-Match."""
    for request in requests:
        answer = variant.send(request, credentials[request.credential])
        yield answer
        if request.method == "GET" and (tag := answer.get_header("ETag")):
            conditional = request._replace(headers={"If-None-Match": tag})
            yield variant.send(conditional, credentials[request.credential])


def read_stored_rows() -> StoredRows:
    due_deliveries = Delivery.objects.filter(next_at__isnull=False).order_by("pk")
    return StoredRows(
        books=list(Book.objects.order_by("pk").values_list()),
        events=[drop_uuid(event) for event in Event.objects.order_by("pk")],
        deliveries=list(
            due_deliveries.values_list("event__kind", "event__subject", "endpoint", "replay", "state", "attempted")
        ),
        answers=list(StoredResponse.objects.order_by("pk").values_list()),
        keys=list(APIKey.objects.values_list("last_used_at")),
    )


def drop_uuid(event: Event) -> tuple[Any, ...]:
    """Returns the event without its random uuid, which its body contains once."""
    before, after = bytes(event.body).split(str(event.uuid).encode())
    return event.kind, event.subject, before, after, event.created_at


@pytest.fixture(params=["compiled", "plain"])
def variant(request: pytest.FixtureRequest, library: Credentials) -> Iterator[ApplicationVariant]:
    """Each variant in turn, with its setting."""
    variant: ApplicationVariant = request.getfixturevalue(request.param)
    with variant.override_settings():
        yield variant


def encode_body(**members: Any) -> bytes:
    return json.dumps(members).encode()


def read_event_data() -> list[dict[str, Any]]:
    """Returns the data of all events, each of which must have one delivery."""
    events = Event.objects.order_by("pk")
    assert [event.deliveries.count() for event in events] == [1] * len(events)
    return [json.loads(bytes(event.body))["data"] for event in events]


def test_a_book_is_stored_and_announced(variant: ApplicationVariant) -> None:
    created = variant.send(Request("POST", "/books", body=encode_body(**build_book(title='{"id":1}'))))
    changed = variant.send(Request("PUT", "/books/101", body=encode_body(title="Emma", year=1816)))
    unchanged = variant.send(Request("PUT", "/books/101", body=encode_body(title="Emma")))
    assert [answer.status for answer in (created, changed, unchanged)] == ["201 Created", "200 OK", "200 OK"]
    assert [(data["book"]["version"], data["previous"]) for data in read_event_data()] == [
        (1, {}),
        (2, {"title": '{"id":1}', "year": 1813}),
    ]
    assert Book.objects.values_list("title_folded", "version").get(pk=101) == ("emma", 2)


@pytest.mark.parametrize(("method", "path"), [("POST", "/books"), ("PUT", "/books/2")])
def test_an_isbn_in_use_is_refused(variant: ApplicationVariant, method: str, path: str) -> None:
    answer = variant.send(Request(method, path, body=encode_body(**build_book(isbn=STORED_ISBNS[0]))))
    assert answer.status == "409 Conflict"
    assert answer.get_header("Link") == f'<{settings.PUBLIC_URL}/api/books/1>; rel="related"'
    assert read_event_data() == []


@pytest.fixture
def deliveries_refused(library: Credentials) -> Iterator[None]:
    """Makes the last write of a change fail: that of its deliveries."""
    execute("ALTER TABLE webhooks_delivery ADD COLUMN cellar integer DEFAULT 0 CHECK (cellar > 0)")
    yield
    execute("ALTER TABLE webhooks_delivery DROP COLUMN cellar")


@pytest.mark.usefixtures("deliveries_refused")
@pytest.mark.parametrize(("method", "path"), [("POST", "/books"), ("PUT", "/books/2")])
def test_a_failed_write_leaves_nothing_behind(variant: ApplicationVariant, method: str, path: str) -> None:
    before = read_stored_rows()
    answer = variant.send(Request(method, path, body=encode_body(**build_book())))
    assert answer.status == "500 Internal Server Error"
    assert read_stored_rows() == before


@pytest.mark.parametrize(("method", "path"), [("POST", "/books"), ("PUT", "/books/2")])
def test_an_event_in_use_is_no_isbn_in_use(
    variant: ApplicationVariant, method: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant.send(Request("PUT", "/books/1", body=encode_body(year=1)))
    [event] = Event.objects.all()
    monkeypatch.setattr("webhooks.outbox.uuid4", lambda: event.uuid)
    answer = variant.send(Request(method, path, body=encode_body(**build_book())))
    assert answer.status == "500 Internal Server Error"


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


@on_postgresql
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


@on_postgresql
def test_an_isbn_is_stored_once(variant: ApplicationVariant) -> None:
    with run_concurrent_change(add_book):
        answer = variant.send(Request("POST", "/books", body=encode_body(**build_book(isbn="taken"))))
    assert answer.status == "409 Conflict"
    assert len(read_event_data()) == Book.objects.filter(isbn="taken").count() == 1


@on_postgresql
@pytest.mark.parametrize(("method", "path"), [("PUT", "/books/2"), ("POST", "/books"), ("DELETE", "/books/2")])
def test_a_write_after_the_connection_was_closed(variant: ApplicationVariant, method: str, path: str) -> None:
    variant.send(Request("PUT", "/books/1", body=encode_body(year=1)))
    connection.connection.close()
    answer = variant.send(Request(method, path, body=NEW_BOOK if method != "DELETE" else b""))
    assert answer.status in ("200 OK", "201 Created")
    assert book_audit.count_events() == book_audit.count_changes()


@pytest.mark.parametrize(
    ("refused", "status"),
    [
        (Request("POST", "/books/1", body=NEW_BOOK), "405 Method Not Allowed"),
        (Request("PATCH", "/books/1", body=NEW_BOOK), "405 Method Not Allowed"),
        (Request("PUT", "/books/1", VERSION_2, headers={"Content-Length": "9999"}, body=NEW_BOOK), "400 Bad Request"),
    ],
)
def test_what_is_refused_before_its_key_does_not_use_it(
    variant: ApplicationVariant, library: Credentials, refused: Request, status: str
) -> None:
    assert variant.send(refused, library["key"]).status == status
    assert APIKey.objects.get().last_used_at is None
