"""With the compiled path and without it, the application gives the same responses and stores the same rows, to the
byte.

Writes are committed, as in production: inside the transaction of a test, the compiled path would not use its own
statements on PostgreSQL. `--hypothesis-profile=long` tries 20,000 examples in each test.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import Permission, User
from django.core.signals import request_started
from django.db import connection
from django.utils import timezone
from hypothesis import event, example, given
from hypothesis import strategies as st

from books.models import Book, Change, StoredResponse
from library_site.api.compiled_path import CompiledRequest, CompiledRoute, respond
from library_site.db.sql import execute, find_raw_connection
from oauth import api_keys
from oauth.credentials import Credential
from oauth.models import APIKey, Authorization
from oauth.tokens import revocations
from tests.support import book_audit
from tests.support.applications import Answer, ApplicationVariant
from tests.support.credentials import UNUSUAL_NAMES, Credentials, create_unusual_credentials
from tests.support.field_rules import RULES
from tests.support.oauth_flows import create_key_header, create_reader, deactivate_without_signal
from tests.support.request_strategies import (
    BODY_MUTATIONS,
    IDEMPOTENCY_KEYS,
    LAST_ETAG,
    MAX_BODY_BYTES,
    ODD_BODIES,
    ODD_CONTENT_TYPES,
    ODD_HEADERS,
    ODD_HOSTS,
    ODD_IDS,
    ODD_LENGTHS,
    ODD_PATHS,
    ODD_TAG_LISTS,
    ODD_VALUES,
    OTHER_SPELLINGS,
    PROTECTION_MODES,
    YEAR_LITERALS,
    choose_rarely,
    requests,
    session_settings,
    write_object,
)
from tests.support.requests import Headers, Request
from tests.support.small_library import NEW_BOOK, NOW, PLAIN_REQUESTS, VERSION_2, encode_body, restore_books
from webhooks.models import Delivery, Event

BOOK = Request("GET", "/books/1", VERSION_2)
CHANGE = BOOK._replace(method="PUT", body=NEW_BOOK)
CREATION = Request("POST", "/books", VERSION_2, body=NEW_BOOK)
VALID_FIELDS = [(name, json.dumps(value)) for name, value in json.loads(NEW_BOOK).items()]
ODD_CHANGE_HEADERS: list[Headers] = [
    *ODD_HEADERS,
    *ODD_LENGTHS,
    *({"Host": host} for host in ODD_HOSTS),
    *({"Content-Type": content_type} for content_type in ODD_CONTENT_TYPES),
    *({name: tags} for name in ("If-Match", "If-None-Match") for tags in [LAST_ETAG, *ODD_TAG_LISTS]),
]
ODD_REQUESTS = {
    "credentials": [request._replace(credential=name) for name in UNUSUAL_NAMES for request in (BOOK, CHANGE)],
    "headers": [CHANGE._replace(headers=headers) for headers in ODD_CHANGE_HEADERS],
    "bodies": [
        CHANGE._replace(body=body)
        for body in [
            *ODD_BODIES,
            *(mutate(NEW_BOOK) for mutate in BODY_MUTATIONS),
            *(NEW_BOOK.ljust(length) for length in (MAX_BODY_BYTES, MAX_BODY_BYTES + 1)),
        ]
    ],
    "members": [
        CHANGE._replace(body=write_object([*VALID_FIELDS, field]).encode())
        for field in [
            *(("titel", "1"), ("title", '"Emma"'), ("id", "1")),
            # Those of the other texts are the same as those of the isbn.
            *((rule.member, rule.literal) for rule in RULES if rule.member in ("isbn", "year")),
            *(("year", year) for year in YEAR_LITERALS),
        ]
    ],
    "idempotency keys": [
        CREATION._replace(headers={"Idempotency-Key": key}) for key in [*IDEMPOTENCY_KEYS, *IDEMPOTENCY_KEYS]
    ],
    "paths": [BOOK._replace(path=path) for path in [*ODD_PATHS, *map("/books/{}".format, ODD_IDS)]],
    "versions": [
        (BOOK, CHANGE)[number % 2]._replace(spelling=spelling) for number, spelling in enumerate(OTHER_SPELLINGS)
    ],
    "queries": [BOOK._replace(path="/books", query=f"author={value}") for value in ODD_VALUES],
}

MOMENTS = [NOW, NOW.replace(microsecond=120_300)]
NEXT_PAGE = re.compile('<[^>?]*[?]([^>]*)>; rel="next"')
Clock = Callable[[datetime], None]


class Session(NamedTuple):
    """Requests that are sent one after the other, at one time, to a library with this LIBRARY_ACCESS.

    `is_deprecated` says whether all its versions are deprecated.
    """

    requests: Sequence[Request]
    access: str
    now: datetime
    is_deprecated: bool = False


class StoredRows(NamedTuple):
    """The rows that requests have written."""

    books: list[Any]
    changes: list[Any]
    events: list[Any]
    deliveries: list[Any]
    responses: list[Any]
    keys: list[Any]


CHANGE_COLUMNS = ("book_id", "version", "kind", "at", "actor__identity", "before", "after")


# The first request is repeated at the end: with an Idempotency-Key the stored response answers it.
request_lists = st.integers(1, 4).flatmap(
    lambda count: st.tuples(*[requests] * count).map(lambda items: [*items, items[0]])
)
sessions = st.builds(
    Session,
    request_lists,
    choose_rarely(st.just("open"), st.sampled_from(PROTECTION_MODES), 4),
    st.sampled_from(MOMENTS),
    st.sampled_from([False] * 7 + [True]),
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Returns a function that sets the time of the library."""
    return lambda now: monkeypatch.setattr("django.utils.timezone.now", lambda: now)


@pytest.fixture
def credentials(owner: User, library: Credentials) -> Credentials:
    """All kinds of credentials. One expires between the two MOMENTS."""
    return {**library, **create_unusual_credentials(owner, library, expires_at=MOMENTS[1])}


def test_plain_requests_do_not_reach_django(compiled: ApplicationVariant, library: Credentials) -> None:
    seen: list[str] = []

    def record_request(environ: Mapping[str, Any], **_: Any) -> None:
        seen.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")

    request_started.connect(record_request)
    with compiled.override_settings():
        for request in PLAIN_REQUESTS:
            restore_books()
            compiled.send(request, library[request.credential])
    request_started.disconnect(record_request)
    assert not seen


ODD_SESSIONS = {
    **{name: Session(requests, "open", NOW) for name, requests in ODD_REQUESTS.items()},
    "credentials where they are needed": Session(ODD_REQUESTS["credentials"][::2], "protected", NOW),
}
# What these requests have is read before the first statement.
WITHOUT_STATEMENTS = {"headers", "bodies", "paths", "versions", "credentials where they are needed"}


@pytest.mark.parametrize("name", ODD_SESSIONS)
def test_odd_requests_are_answered_the_same(
    compiled: ApplicationVariant, plain: ApplicationVariant, credentials: Credentials, clock: Clock, name: str
) -> None:
    if connection.vendor == "postgresql" and name in WITHOUT_STATEMENTS:
        pytest.skip("SQLite shows it.")
    session = ODD_SESSIONS[name]
    clock(session.now)
    assert run_session(compiled, session, credentials) == run_session(plain, session, credentials)


@session_settings
@example(Session([Request("GET", "/books")], "protected", NOW))
@example(Session([Request("GET", "/books", query="author=%25")], "open", NOW))
@example(Session([Request("GET", "/books", query="author=é".encode().decode("latin-1"))], "open", NOW))
@given(session=sessions)
def test_both_variants_answer_and_store_the_same(
    compiled: ApplicationVariant, plain: ApplicationVariant, credentials: Credentials, clock: Clock, session: Session
) -> None:
    clock(session.now)
    expected = run_session(plain, session, credentials)
    for response in expected[0]:
        event(response.status)
    assert run_session(compiled, session, credentials) == expected


def run_session(
    variant: ApplicationVariant, session: Session, credentials: Credentials
) -> tuple[list[Answer], StoredRows]:
    """Sends the requests and returns the responses, and the rows that are stored at the end."""
    restore_books()
    with variant.override_settings(LIBRARY_ACCESS=session.access):
        # Without a raw connection both variants would send the same statements to PostgreSQL.
        assert bool(find_raw_connection(connection)) == (variant.compiled and connection.vendor == "postgresql")
        responses = list(send_requests(variant, session, credentials))
    assert book_audit.count_events() == book_audit.count_changes()
    return responses, read_stored_rows()


def send_requests(variant: ApplicationVariant, session: Session, credentials: Credentials) -> Iterator[Answer]:
    """Yields the response of each request and of those that follow from it."""
    last_etag = LAST_ETAG
    for request in session.requests:
        conditions = {name: value and value.replace(LAST_ETAG, last_etag) for name, value in request.headers.items()}
        response = variant.send(
            request._replace(headers=conditions), credentials[request.credential], session.is_deprecated
        )
        yield response
        last_etag = response.get_header("ETag") or last_etag
        for following in iter_following(request, response):
            yield variant.send(following, credentials[request.credential], session.is_deprecated)


def iter_following(request: Request, response: Answer) -> Iterator[Request]:
    """Yields what follows from the response to a GET: the same with If-None-Match, and the request of the next page."""
    if request.method == "GET" and (etag := response.get_header("ETag")):
        yield request._replace(headers={"If-None-Match": etag})
    if match := NEXT_PAGE.search(response.get_header("Link") or ""):
        yield request._replace(query=match[1])


def read_stored_rows() -> StoredRows:
    due_deliveries = Delivery.objects.filter(next_at__isnull=False).order_by("pk")
    return StoredRows(
        books=list(Book.objects.order_by("pk").values_list()),
        changes=list(Change.objects.order_by("pk").values_list(*CHANGE_COLUMNS)),
        events=[drop_uuid(event) for event in Event.objects.order_by("pk")],
        deliveries=list(
            due_deliveries.values_list("event__kind", "event__subject", "endpoint", "replay", "state", "attempted")
        ),
        responses=list(StoredResponse.objects.order_by("pk").values_list()),
        keys=list(APIKey.objects.order_by("pk").values_list("last_used_at")),
    )


def drop_uuid(event: Event) -> tuple[Any, ...]:
    """Returns the event without its random uuid, which its body contains once."""
    before, after = bytes(event.body).split(str(event.uuid).encode())
    return event.kind, event.subject, before, after, event.created_at


@pytest.fixture
def deliveries_refused(library: Credentials) -> Iterator[None]:
    """Makes the last write of a change fail: that of its deliveries."""
    execute("ALTER TABLE webhooks_delivery ADD COLUMN cellar integer DEFAULT 0 CHECK (cellar > 0)")
    yield
    execute("ALTER TABLE webhooks_delivery DROP COLUMN cellar")


WRITES = [Request("POST", "/books", body=NEW_BOOK), Request("PUT", "/books/2", body=NEW_BOOK)]


@pytest.mark.usefixtures("deliveries_refused")
def test_a_failed_write_leaves_nothing_behind(variant: ApplicationVariant) -> None:
    before = read_stored_rows()
    for write in WRITES:
        assert variant.send(write).status == "500 Internal Server Error"
        assert read_stored_rows() == before


def test_an_event_in_use_is_no_isbn_in_use(variant: ApplicationVariant, monkeypatch: pytest.MonkeyPatch) -> None:
    variant.send(Request("PUT", "/books/1", body=encode_body(year=1)))
    [event] = Event.objects.all()
    monkeypatch.setattr("webhooks.outbox.uuid4", lambda: event.uuid)
    assert [variant.send(write).status for write in WRITES] == ["500 Internal Server Error"] * 2


def test_what_is_refused_before_its_key_does_not_use_it(variant: ApplicationVariant, library: Credentials) -> None:
    refused = [
        Request("POST", "/books/1", body=NEW_BOOK),
        Request("PATCH", "/books/1", body=NEW_BOOK),
        Request("PUT", "/books/1", VERSION_2, headers={"Content-Length": "9999"}, body=NEW_BOOK),
    ]
    statuses = [variant.send(request, library["key"]).status[:3] for request in refused]
    assert statuses == ["405", "405", "400"]
    assert not APIKey.objects.exclude(last_used_at=None).exists()


def test_a_fault_of_the_compiled_path_is_logged_and_django_answers(caplog: pytest.LogCaptureFixture) -> None:
    def fail(request: CompiledRequest) -> None:
        raise ZeroDivisionError

    request: Any = SimpleNamespace(is_final=False)
    assert respond(CompiledRoute("GET", re.compile("/books"), "books", "GET", fail), request) is None
    assert "ZeroDivisionError" in caplog.text


OK, UNAUTHORIZED, FORBIDDEN = "200 OK", "401 Unauthorized", "403 Forbidden"
LOSSES: list[tuple[Callable[[User], object], list[str]]] = [
    (lambda owner: api_keys.revoke_keys(owner.api_keys.all(), NOW), [UNAUTHORIZED, UNAUTHORIZED]),
    (lambda owner: owner.api_keys.update(expires_at=NOW), [UNAUTHORIZED, UNAUTHORIZED]),
    (
        lambda owner: revocations.revoke_authorizations(Authorization.objects.filter(user=owner), NOW),
        [UNAUTHORIZED, UNAUTHORIZED],
    ),
    (deactivate_without_signal, [UNAUTHORIZED, UNAUTHORIZED]),
    (lambda owner: owner.user_permissions.clear(), [OK, FORBIDDEN]),
]


def test_what_a_key_loses_it_has_lost_in_the_next_request(variant: ApplicationVariant) -> None:
    use_key = [Request("GET", "/books/1"), Request("PUT", "/books/1", body=encode_body(year=1))]
    for number, (change, statuses) in enumerate(LOSSES):
        owner = create_reader(f"reader {number}")
        owner.user_permissions.add(Permission.objects.get(codename="change_book"))
        authorization = Authorization.objects.create(user=owner, scopes="read write", created_at=timezone.now())
        app = Credential("app", frozenset(["read", "write"]), 0, authorization=authorization.pk)
        key = create_key_header(owner, creator=app)
        assert [variant.send(request, key).status for request in use_key] == [OK, OK]
        change(owner)
        assert [variant.send(request, key).status for request in use_key] == statuses, number
