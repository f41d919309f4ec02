"""Whatever is asked is answered, and whatever is written is kept, with the compiled path as without: to the byte.

What is written is committed, as in use: inside a test's transaction PostgreSQL would be asked otherwise.
`--hypothesis-profile=long` has each test try 20,000 examples.
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
from tests.support.applications import Answer, Way
from tests.support.books import new_book
from tests.support.concurrency import until
from tests.support.endpoints import endpoint
from tests.support.forged_tokens import claims_of, forged
from tests.support.oauth_flows import bearer, key_for
from tests.support.request_strategies import BOOKS, IN_USE, PROTECTED, Request, Spelling, equal, requests, seldom
from webhooks.models import Delivery, Event

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
MOMENTS = [NOW, NOW.replace(microsecond=120_300)]
PLAIN = [Request("GET", "/books"), Request("GET", "/books/1"), Request("GET", "/books/1", Spelling("/api/v2"))]
# What requests write, children before their parents.
TABLES = ("webhooks_delivery", "webhooks_event", "books_keptanswer", "books_book")
# So that new books have the ids of those before.
NUMBERED = {
    "postgresql": "SELECT setval('books_book_id_seq', 100)",
    "sqlite": "UPDATE sqlite_sequence SET seq = 100 WHERE name = 'books_book'",
}

on_postgresql = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite's writers wait before they read")
# By name, as headers.
Credentials = Mapping[str, Mapping[str, str]]
Clock = Callable[[datetime], None]


class Session(NamedTuple):
    """Requests one after the other, at one moment of a library with this LIBRARY_ACCESS."""

    requests: Sequence[Request]
    access: str
    now: datetime


class Kept(NamedTuple):
    """What is in the database."""

    books: list[Any]
    events: list[Any]
    deliveries: list[Any]
    answers: list[Any]
    keys: list[Any]


one = st.lists(requests, min_size=1, max_size=1)
# The last is the first once more: with an Idempotency-Key it is answered from what was kept.
several = st.lists(requests, min_size=1, max_size=3).map(lambda some: [*some, some[0]])
sessions = st.builds(
    Session, seldom(one, several, 4), seldom(st.just("open"), st.sampled_from(PROTECTED)), st.sampled_from(MOMENTS)
)


@pytest.fixture(scope="session")
def compiled(static_files: None) -> Way:
    return Way(compiled=True)


@pytest.fixture(scope="session")
def plain(static_files: None) -> Way:
    return Way(compiled=False)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets what the library takes for the time."""
    return lambda now: monkeypatch.setattr("django.utils.timezone.now", lambda: now)


@pytest.fixture
def library(transactional_db: None, compiled: Way) -> Credentials:
    """Has BOOKS and one who listens, and was asked plain questions before."""
    endpoint()
    owner = User.objects.create_user("owner", is_superuser=True)
    key, token = key_for(owner), bearer(forged(claims_of(owner.pk)))
    restore()
    with compiled.chosen():
        for question in PLAIN:
            compiled.answer(question)
    return {
        "none": {},
        "key": key,
        "token": token,
        "reader's token": bearer(forged(claims_of(owner.pk, scope="read"))),
        "both": {**key, **token},
        "no key": {"X-API-Key": "nonsense"},
        "no token": bearer("nonsense"),
        "no Bearer": {"Authorization": "Basic nonsense"},
    }


def restore() -> None:
    """BOOKS and nothing else, of which the ledger knows nothing."""
    with transaction.atomic():
        for table in TABLES:
            execute(f"DELETE FROM {table}")  # noqa: S608  # of our own names
        APIKey.objects.update(last_used_at=None)
        Book.objects.bulk_create(Book(pk=number, **book, updated_at=NOW) for number, book in enumerate(BOOKS, 1))
        execute(NUMBERED[connection.vendor])
        book_audit.forget()


@pytest.mark.parametrize("question", PLAIN)
def test_plain_questions_do_not_reach_django(compiled: Way, library: Credentials, question: Request) -> None:
    reached: list[Any] = []

    def reach(**_: Any) -> None:
        reached.append(question)

    request_started.connect(reach)
    with compiled.chosen():
        compiled.answer(question)
    request_started.disconnect(reach)
    assert reached == []


@equal
@example(Session([Request("GET", "/books")], "protected", NOW))
@example(Session([Request("GET", "/books", query="author=%25")], "open", NOW))
@example(Session([Request("GET", "/books", query="author=é".encode().decode("latin-1"))], "open", NOW))
@given(session=sessions)
def test_both_ways_answer_and_keep_the_same(
    compiled: Way, plain: Way, library: Credentials, clock: Clock, session: Session
) -> None:
    clock(session.now)
    expected = lived(plain, session, library)
    for answer in expected[0]:
        event(answer.status)
    assert lived(compiled, session, library) == expected


def lived(way: Way, session: Session, credentials: Credentials) -> tuple[list[Answer], Kept]:
    """The answers, and what was kept when all were given."""
    restore()
    with way.chosen(LIBRARY_ACCESS=session.access):
        # Else PostgreSQL would be asked in Django's way both times.
        assert bool(raw_connection(connection)) == (way.compiled and connection.vendor == "postgresql")
        answers = list(answered(way, session.requests, credentials))
    assert book_audit.announced() == book_audit.done()
    return answers, kept()


def answered(way: Way, requests: Sequence[Request], credentials: Credentials) -> Iterator[Answer]:
    """What has a tag is asked for once more by who holds it."""
    for request in requests:
        answer = way.answer(request, credentials[request.credential])
        yield answer
        if request.method == "GET" and (tag := answer.header("ETag")):
            held = request._replace(headers={"If-None-Match": tag})
            yield way.answer(held, credentials[request.credential])


def kept() -> Kept:
    due = Delivery.objects.filter(next_at__isnull=False).order_by("pk")
    return Kept(
        books=list(Book.objects.order_by("pk").values_list()),
        events=[but_for_chance(one) for one in Event.objects.order_by("pk")],
        deliveries=list(due.values_list("event__kind", "event__subject", "endpoint", "replay", "state", "attempted")),
        answers=list(StoredResponse.objects.order_by("pk").values_list()),
        keys=list(APIKey.objects.values_list("last_used_at")),
    )


def but_for_chance(event: Event) -> tuple[Any, ...]:
    """All of an event but its uuid, which its body has once."""
    before, after = bytes(event.body).split(str(event.uuid).encode())
    return event.kind, event.subject, before, after, event.created_at


@pytest.fixture(params=["compiled", "plain"])
def way(request: pytest.FixtureRequest, library: Credentials) -> Iterator[Way]:
    """Each in turn, its setting in force."""
    chosen: Way = request.getfixturevalue(request.param)
    with chosen.chosen():
        yield chosen


def body(**members: Any) -> bytes:
    return json.dumps(members).encode()


def told() -> list[dict[str, Any]]:
    """The data of all events, each of which is on its way to who listens."""
    events = Event.objects.order_by("pk")
    assert [one.deliveries.count() for one in events] == [1] * len(events)
    return [json.loads(bytes(one.body))["data"] for one in events]


def test_a_book_is_kept_and_told_of(way: Way) -> None:
    created = way.answer(Request("POST", "/books", body=body(**new_book(title='{"id":1}'))))
    changed = way.answer(Request("PUT", "/books/101", body=body(title="Emma", year=1816)))
    same = way.answer(Request("PUT", "/books/101", body=body(title="Emma")))
    assert [answer.status for answer in (created, changed, same)] == ["201 Created", "200 OK", "200 OK"]
    assert [(data["book"]["version"], data["previous"]) for data in told()] == [
        (1, {}),
        (2, {"title": '{"id":1}', "year": 1813}),
    ]
    assert Book.objects.values_list("title_folded", "version").get(pk=101) == ("emma", 2)


@pytest.mark.parametrize(("method", "path"), [("POST", "/books"), ("PUT", "/books/2")])
def test_an_isbn_in_use_is_refused(way: Way, method: str, path: str) -> None:
    answer = way.answer(Request(method, path, body=body(**new_book(isbn=IN_USE[0]))))
    assert answer.status == "409 Conflict"
    assert answer.header("Link") == f'<{settings.PUBLIC_URL}/api/books/1>; rel="related"'
    assert told() == []


@pytest.fixture
def deliveries_refused(library: Credentials) -> Iterator[None]:
    """The last that is written of a change."""
    execute("ALTER TABLE webhooks_delivery ADD COLUMN cellar integer DEFAULT 0 CHECK (cellar > 0)")
    yield
    execute("ALTER TABLE webhooks_delivery DROP COLUMN cellar")


@pytest.mark.usefixtures("deliveries_refused")
@pytest.mark.parametrize(("method", "path"), [("POST", "/books"), ("PUT", "/books/2")])
def test_what_fails_leaves_nothing_behind(way: Way, method: str, path: str) -> None:
    before = kept()
    answer = way.answer(Request(method, path, body=body(**new_book())))
    assert answer.status == "500 Internal Server Error"
    assert kept() == before


@pytest.mark.parametrize(("method", "path"), [("POST", "/books"), ("PUT", "/books/2")])
def test_an_event_in_use_is_no_isbn_in_use(way: Way, method: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    way.answer(Request("PUT", "/books/1", body=body(year=1)))
    [written] = Event.objects.all()
    monkeypatch.setattr("webhooks.outbox.uuid4", lambda: written.uuid)
    answer = way.answer(Request(method, path, body=body(**new_book())))
    assert answer.status == "500 Internal Server Error"


@contextmanager
def meanwhile(change: Callable[[], object]) -> Iterator[None]:
    """Someone else begins a change before the block, and commits it when somebody waits for that."""
    begun = Signal()

    def change_slowly() -> None:
        with transaction.atomic():
            change()
            begun.set()
            until(lambda: fetch_all("SELECT count(*) FROM pg_locks WHERE NOT granted") != [(0,)])
        connection.close()

    slow = Thread(target=change_slowly)
    slow.start()
    assert begun.wait(30)
    yield
    slow.join()


def add() -> None:
    changes.add_book(new_book(isbn="taken"), NOW)


def change() -> None:
    changes.apply_change(changes.lock_book(1), {"title": "Emma"}, NOW)


def remove() -> None:
    changes.delete_book(changes.lock_book(1), NOW)


EMMA = ("Emma", 1813, 2)
PRIDE = ("Pride and Prejudice", 1813, 1)
LATE: list[Any] = [
    pytest.param(change, {"body": body(year=1)}, "200 OK", ("Emma", 1, 3), id="another member"),
    pytest.param(change, {"body": body(title="Emma")}, "200 OK", EMMA, id="the same"),
    pytest.param(
        change,
        {"body": body(year=1), "headers": {"If-Match": '"v1-1-1"'}},
        "412 Precondition Failed",
        EMMA,
        id="of what was before",
    ),
    pytest.param(remove, {"body": body(year=1)}, "404 Not Found", None, id="of a book that is gone"),
    pytest.param(add, {"body": body(isbn="taken")}, "409 Conflict", PRIDE, id="to an isbn that is taken"),
]


@on_postgresql
@pytest.mark.parametrize(("before", "late", "status", "after"), LATE)
def test_a_change_that_comes_late(
    way: Way, before: Callable[[], object], late: dict[str, Any], status: str, after: tuple[str, int, int] | None
) -> None:
    with meanwhile(before):
        answer = way.answer(Request("PUT", "/books/1", **late))
    assert answer.status == status
    assert Book.objects.filter(pk=1).values_list("title", "year", "version").first() == after
    assert book_audit.announced() == book_audit.done()


@on_postgresql
def test_an_isbn_is_taken_once(way: Way) -> None:
    with meanwhile(add):
        answer = way.answer(Request("POST", "/books", body=body(**new_book(isbn="taken"))))
    assert answer.status == "409 Conflict"
    assert len(told()) == Book.objects.filter(isbn="taken").count() == 1
