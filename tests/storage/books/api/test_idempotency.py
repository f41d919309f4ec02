"""Idempotency-Key: a request that is sent again is answered again, and carried out once."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils import timezone
from pytest_django import Settings
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from books.models import StoredResponse
from books.writing.changes import ConcurrentChange
from library_site.api.idempotency import idempotent
from library_site.api.viewsets import APIViewSet
from library_site.http.api_errors import APIError
from library_site.jobs.expiry import delete_expired
from tests.support.books import build_book
from tests.support.concurrency import run_concurrently
from tests.support.logs import kill_worker
from tests.support.oauth_flows import create_key_header, create_librarian
from tests.support.pages import parse_error
from tests.support.server import Service, serve_library
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

BOOKS = "/api/v2/books"
BULK = "/api/v2/books/bulk"
KEY = {"Idempotency-Key": "4c0e6a1f-9b8d-4e35-8f0a-1b2c3d4e5f60"}
KEY_REUSED: tuple[int, str, list[str]] = (422, "VALIDATION_ERROR", [])

OpenClient = Callable[[str], httpx.Client]


@pytest.fixture
def open_client(api: httpx.Client, application: "WSGIApplication") -> Iterator[OpenClient]:
    """Opens clients with other addresses."""
    clients: list[httpx.Client] = []

    def open_at(address: str) -> httpx.Client:
        transport = httpx.WSGITransport(app=application, remote_addr=address)
        clients.append(httpx.Client(transport=transport, base_url="http://127.0.0.1"))
        return clients[-1]

    yield open_at
    for client in clients:
        client.close()


@pytest.fixture
def librarian_key(db: None) -> dict[str, str]:
    """KEY, sent by a librarian."""
    return {**KEY, **create_key_header(create_librarian())}


def build_operations(*books: dict[str, Any]) -> dict[str, Any]:
    return {"operations": [{"op": "create", "book": book} for book in books]}


def is_replayed(response: httpx.Response) -> bool:
    return bool(response.headers.get("Idempotent-Replayed") == "true")


def get_replayed_parts(response: httpx.Response) -> tuple[object, ...]:
    """The parts of a response that are the same when it is repeated."""
    names = ("Content-Type", "Location", "ETag", "Link")
    return response.status_code, response.content, *(response.headers.get(name) for name in names)


def require_replay(first: httpx.Response, repetition: httpx.Response) -> None:
    assert get_replayed_parts(repetition) == get_replayed_parts(first)
    assert (is_replayed(first), is_replayed(repetition)) == (False, True)


def count_books(api: httpx.Client) -> int:
    """The number of books in the library."""
    return len(api.get(BOOKS).json()["results"])


def age_responses(age: timedelta) -> None:
    """Makes the stored answers older by this time."""
    for response in StoredResponse.objects.all():
        response.stored_at -= age
        response.save()


def test_a_creation_sent_again_is_answered_again(api: httpx.Client) -> None:
    body = build_book()
    first, *repetitions = [api.post(BOOKS, json=body, headers=KEY) for _ in range(3)]
    assert first.status_code == 201
    for repetition in repetitions:
        require_replay(first, repetition)
    assert count_books(api) == 1


@pytest.mark.parametrize(("address", "count"), [(BULK, 2), (f"{BULK}?dry_run=true", 0)])
def test_a_bulk_sent_again_is_answered_again(api: httpx.Client, address: str, count: int) -> None:
    body = build_operations(build_book(), build_book())
    first, repetition = [api.post(address, json=body, headers=KEY) for _ in range(2)]
    assert first.status_code == 200
    require_replay(first, repetition)
    assert count_books(api) == count


def test_the_first_response_is_repeated_whatever_changed_since(api: httpx.Client) -> None:
    body = build_book()
    first = api.post(BOOKS, json=body, headers=KEY)
    api.patch(first.headers["Location"], json={"year": 2000})
    require_replay(first, api.post(BOOKS, json=body, headers=KEY))
    api.delete(first.headers["Location"])
    require_replay(first, api.post(BOOKS, json=body, headers=KEY))
    assert count_books(api) == 0


def test_without_a_key_a_request_is_new(api: httpx.Client) -> None:
    body = build_book()
    assert [api.post(BOOKS, json=body).status_code for _ in range(2)] == [201, 409]


def test_different_keys_are_different_requests(api: httpx.Client, librarian_key: dict[str, str]) -> None:
    keys = ["a", "A", "a-", "~" * 255, "~" * 254, '"quoted"', "a,b"]
    responses = [api.post(BOOKS, json=build_book(), headers={**librarian_key, "Idempotency-Key": key}) for key in keys]
    assert [(response.status_code, is_replayed(response)) for response in responses] == [(201, False)] * len(keys)


@pytest.mark.parametrize("address", [BOOKS, BULK])
def test_a_key_is_not_for_another_request(api: httpx.Client, librarian_key: dict[str, str], address: str) -> None:
    book = build_book()
    body = build_operations(book) if address == BULK else book
    first = api.post(address, json=body, headers=librarian_key)
    responses = [
        api.post(address, json={**body, "shelf": 1}, headers=librarian_key),
        api.post(address, content=b"{", headers=librarian_key),
        api.post(address, headers=librarian_key),
        api.post(BULK if address == BOOKS else BOOKS, json=body, headers=librarian_key),
        api.post(BULK if address == BOOKS else f"{BULK}?dry_run=true", json=body, headers=librarian_key),
        api.post(f"{address}?shelf=1", json=body, headers=librarian_key),
    ]
    assert [parse_error(response) for response in responses] == [KEY_REUSED] * 6
    assert not any(is_replayed(response) for response in responses)
    assert count_books(api) == 1
    require_replay(first, api.post(address, json=body, headers=librarian_key))


def test_the_response_to_a_reused_key_is_whole(api: httpx.Client, librarian_key: dict[str, str]) -> None:
    api.post(BOOKS, json=build_book(), headers=librarian_key)
    response = api.post(BOOKS, json=build_book(), headers=librarian_key)
    assert response.status_code == 422
    assert response.json() == {
        "error": {
            "code": "VALIDATION_ERROR",
            "message": "This Idempotency-Key came with another request before",
            "requestId": response.headers["X-Request-ID"],
        }
    }


@pytest.mark.parametrize("address", [BOOKS, BULK])
def test_anonymous_callers_of_one_address_may_use_the_same_key(api: httpx.Client, address: str) -> None:
    """They may be different people behind one proxy, who know nothing of each other's keys."""
    bodies = [book if address == BOOKS else build_operations(book) for book in (build_book(), build_book())]
    first, second = [api.post(address, json=body, headers=KEY) for body in bodies]
    rehearsal = api.post(f"{BULK}?dry_run=true", json=build_operations(build_book()), headers=KEY)
    assert [(response.is_success, is_replayed(response)) for response in (first, second, rehearsal)] == [
        (True, False)
    ] * 3
    assert count_books(api) == 2
    require_replay(first, api.post(address, json=bodies[0], headers=KEY))
    require_replay(second, api.post(address, json=bodies[1], headers=KEY))


def test_a_conflict_is_stored(api: httpx.Client) -> None:
    holder = api.post(BOOKS, json=build_book())
    body = build_book(isbn=holder.json()["isbn"])
    first = api.post(BOOKS, json=body, headers=KEY)
    api.delete(holder.headers["Location"])
    repetition = api.post(BOOKS, json=body, headers=KEY)
    assert parse_error(first) == (409, "CONFLICT", ["isbn"])
    require_replay(first, repetition)
    assert count_books(api) == 0


class ShelfIsFull(APIError):
    status = 409
    message = "The shelf is full"


class ShelfViewSet(APIViewSet):
    """Names nothing of books. Each request is refused by the next of its refusals."""

    permission_classes = []
    body_serializers = {"create": Serializer}
    refusals = iter(())

    @idempotent
    def create(self, request: Request) -> HttpResponse:
        raise next(self.refusals)


@pytest.mark.parametrize(("refusal", "is_stored"), [(ShelfIsFull, True), (ConcurrentChange, False)])
def test_a_conflict_of_any_kind_is_stored_unless_it_passes(
    rf: RequestFactory, db: None, refusal: type[APIError], is_stored: bool
) -> None:
    view = ShelfViewSet.as_view({"post": "create"}, refusals=iter([refusal(), refusal()]))
    responses = []
    for _ in range(2):
        request = rf.post("/api/v2/shelves", {}, "application/json", headers=KEY)
        request.META["wsgi.input"] = BytesIO(b"{}")
        responses.append(view(request))
    assert [response.status_code for response in responses] == [409, 409]
    assert ["Idempotent-Replayed" in response for response in responses] == [False, is_stored]


@pytest.mark.parametrize(
    ("address", "body", "status"),
    [
        (BOOKS, b'{"title": 1}', 422),
        (BOOKS, b"[]", 422),
        (BOOKS, b"{", 400),
        (BULK, b'{"operations": []}', 422),
        (BULK, b'{"operations": [{"op": "delete", "id": 987654321}]}', 422),
        (BULK, b"{", 400),
    ],
)
def test_a_refusal_is_stored(
    api: httpx.Client, librarian_key: dict[str, str], address: str, body: bytes, status: int
) -> None:
    first, repetition = [api.post(address, content=body, headers=librarian_key) for _ in range(2)]
    assert first.status_code == status
    require_replay(first, repetition)
    assert parse_error(api.post(address, json=build_book(), headers=librarian_key)) == KEY_REUSED


@pytest.mark.parametrize("address", [BOOKS, BULK])
def test_a_failure_of_the_library_is_not_stored(api: httpx.Client, address: str) -> None:
    body = build_book() if address == BOOKS else build_operations(build_book())
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE books_book ADD COLUMN cellar integer DEFAULT 0 CHECK (cellar > 0)")
    failures = [api.post(address, json=body, headers=KEY) for _ in range(2)]
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE books_book DROP COLUMN cellar")
    success = api.post(address, json=body, headers=KEY)
    assert [parse_error(response) for response in failures] == [(500, "INTERNAL_ERROR", [])] * 2
    assert (success.is_success, is_replayed(success)) == (True, False)
    require_replay(success, api.post(address, json=body, headers=KEY))
    assert count_books(api) == 1


def test_clients_of_different_addresses_may_use_the_same_key(api: httpx.Client, open_client: OpenClient) -> None:
    addresses = ["127.0.0.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8:0:1::1"]
    responses = [open_client(address).post(BOOKS, json=build_book(), headers=KEY) for address in addresses]
    assert [(response.status_code, is_replayed(response)) for response in responses] == [(201, False)] * 5
    assert count_books(api) == 5
    # Even if they send the same.
    body = build_book()
    responses = [open_client(address).post(BOOKS, json=body, headers=KEY) for address in addresses[:2]]
    assert [(response.status_code, is_replayed(response)) for response in responses] == [(201, False), (409, False)]


@pytest.mark.parametrize(
    ("first_address", "second_address"),
    [("192.0.2.1", "192.0.2.1"), ("192.0.2.1", "::ffff:192.0.2.1"), ("2001:db8::1", "2001:db8::2")],
)
def test_a_caller_may_send_again_by_another_connection(
    open_client: OpenClient, first_address: str, second_address: str
) -> None:
    body = build_book()
    require_replay(
        *(open_client(address).post(BOOKS, json=body, headers=KEY) for address in (first_address, second_address))
    )


def test_a_forwarded_address_is_not_trusted(api: httpx.Client) -> None:
    body = build_book()
    header_sets = [{**KEY, "X-Forwarded-For": address} for address in ("192.0.2.1", "192.0.2.2")]
    require_replay(*(api.post(BOOKS, json=body, headers=headers) for headers in header_sets))


def test_a_forwarded_address_of_a_known_proxy_is_trusted(api: httpx.Client, settings: Settings) -> None:
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "NUM_PROXIES": 1}
    header_sets = [{**KEY, "X-Forwarded-For": address} for address in ("192.0.2.1", "192.0.2.2")]
    responses = [api.post(BOOKS, json=build_book(), headers=headers) for headers in header_sets]
    assert [(response.status_code, is_replayed(response)) for response in responses] == [(201, False)] * 2


@pytest.mark.parametrize(("age", "count"), [(timedelta(hours=24, minutes=-1), 0), (timedelta(hours=24), 1)])
def test_a_response_is_cleared_after_a_day(api: httpx.Client, age: timedelta, count: int) -> None:
    body = build_book()
    first = api.post(BOOKS, json=body, headers=KEY)
    age_responses(age)
    assert delete_expired(timezone.now())["kept answers"] == count
    assert is_replayed(api.post(BOOKS, json=body, headers=KEY)) == (count == 0)
    assert first.status_code == 201


def test_after_a_day_a_request_is_new(api: httpx.Client, librarian_key: dict[str, str]) -> None:
    """The key of a librarian leads to the first response, whatever is sent with it."""
    first = api.post(BOOKS, json=build_book(), headers=librarian_key)
    age_responses(timedelta(hours=24))
    body = build_book()
    second = api.post(BOOKS, json=body, headers=librarian_key)
    assert (second.status_code, is_replayed(second)) == (201, False)
    assert second.headers["Location"] != first.headers["Location"]
    require_replay(second, api.post(BOOKS, json=body, headers=librarian_key))


@pytest.mark.parametrize("address", [BOOKS, BULK])
@pytest.mark.parametrize(
    "key",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b" ", id="blank"),
        pytest.param(b"a b", id="space"),
        pytest.param(b"a\tb", id="tab"),
        pytest.param(b"\x7f", id="control character"),
        pytest.param(b"a" * 256, id="long"),
    ],
)
def test_a_bad_key_is_refused(api: httpx.Client, address: str, key: bytes) -> None:
    body = build_book() if address == BOOKS else build_operations(build_book())
    response = api.post(address, json=body, headers={b"Idempotency-Key": key})
    assert parse_error(response) == (422, "VALIDATION_ERROR", ["Idempotency-Key"])
    assert count_books(api) == 0


@pytest.mark.parametrize("key", [b"", "é".encode(), b"\xff", b"a" * 256], ids=["empty", "UTF-8", "Latin-1", "long"])
def test_the_server_refuses_a_bad_key(service: Service, key: bytes) -> None:
    with service.open_client() as client:
        response = client.post(BOOKS, json=build_book(), headers={b"Idempotency-Key": key})
    assert parse_error(response) == (422, "VALIDATION_ERROR", ["Idempotency-Key"])


@pytest.mark.parametrize("key", ["one", "a bad one"])
def test_a_key_on_another_method_is_ignored(api: httpx.Client, key: str) -> None:
    headers = {"Idempotency-Key": key}
    address = api.post(BOOKS, json=build_book()).headers["Location"]
    responses = [
        api.get(address, headers=headers),
        api.put(address, json=build_book(), headers=headers),
        api.patch(address, json={"year": 2000}, headers=headers),
        api.patch(address, json={"year": 3000}, headers=headers),
        api.delete(address, headers=headers),
        api.delete(address, headers=headers),
    ]
    assert [response.status_code for response in responses] == [200, 200, 200, 200, 204, 404]
    assert not any(is_replayed(response) for response in responses)
    assert responses[3].json()["year"] == 3000


def test_version_1_ignores_keys(api: httpx.Client) -> None:
    body = build_book()
    responses = [api.post("/api/books", json=body, headers=KEY) for _ in range(2)]
    assert [response.status_code for response in responses] == [201, 409]


def test_a_request_whose_body_is_not_read_does_not_use_up_its_key(api: httpx.Client) -> None:
    refusals = [
        api.post(BOOKS, content=b"a", headers={**KEY, "Content-Type": "text/plain"}),
        api.post(BOOKS, content=b" " * 2 * 2**20, headers=KEY),
    ]
    assert [response.status_code for response in refusals] == [415, 413]
    assert api.post(BOOKS, json=build_book(), headers=KEY).status_code == 201


def find_by_isbn(client: httpx.Client, isbn: str) -> list[dict[str, Any]]:
    books: list[dict[str, Any]] = client.get(BOOKS, params={"isbn": isbn}).json()["results"]
    return books


@pytest.mark.parametrize("address", [BOOKS, BULK])
def test_one_of_many_requests_with_one_key_is_carried_out(service: Service, address: str) -> None:
    for number in range(5):
        book, headers = build_book(), {"Idempotency-Key": f"{address}-{number}"}
        body = book if address == BOOKS else build_operations(book)
        post = partial(httpx.Client.post, url=address, json=body, headers=headers)
        responses = run_concurrently(service, [post] * 12)
        successes = [response for response in responses if response.is_success]
        refusals = [parse_error(response) for response in responses if not response.is_success]
        assert refusals == [(409, "CONFLICT", [])] * (12 - len(successes))
        assert len({get_replayed_parts(response) for response in successes}) == 1
        assert [is_replayed(response) for response in successes].count(False) == 1
        with service.open_client() as client:
            assert len(find_by_isbn(client, book["isbn"])) == 1
            repetition = post(client)
        assert (get_replayed_parts(repetition), is_replayed(repetition)) == (get_replayed_parts(successes[0]), True)


@contextmanager
def hold_responses(service: Service) -> Iterator[Callable[[], bool]]:
    """Stops each request with a key between the write of its book and the write of its stored answer.

    Yields a predicate: whether a request is stopped.
    """
    hold = hold_on_postgresql if connection.vendor == "postgresql" else hold_on_sqlite
    with hold(service.database_url) as is_held:
        yield is_held


@contextmanager
def hold_on_postgresql(url: str) -> Iterator[Callable[[], bool]]:
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as observer:
        holder.execute("LOCK TABLE books_keptanswer IN EXCLUSIVE MODE")
        yield lambda: observer.execute("SELECT 1 FROM pg_locks WHERE NOT granted").rowcount > 0
        holder.rollback()


@contextmanager
def hold_on_sqlite(url: str) -> Iterator[Callable[[], bool]]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0, isolation_level=None)) as holder:
        # This count takes hours.
        shelves = ", ".join(f"books_book AS shelf_{number}" for number in range(6))
        holder.execute(
            f"CREATE TRIGGER hold BEFORE INSERT ON books_keptanswer BEGIN SELECT count(*) FROM {shelves}; END"  # noqa: S608  # names of ours
        )
        yield partial(is_locked, holder)
        holder.execute("DROP TRIGGER hold")


def is_locked(database: sqlite3.Connection) -> bool:
    try:
        database.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return True
    database.execute("ROLLBACK")
    return False


def send_repeatedly(post: Callable[[], httpx.Response]) -> Iterator[httpx.Response]:
    """Sends a request again and again for half a minute."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        yield post()


def test_an_interrupted_request_is_carried_out_when_it_is_sent_again(tmp_path: Path) -> None:
    body = build_book()
    post = partial(httpx.Client.post, url=BOOKS, json=body, headers=KEY)
    with serve_library(tmp_path) as service, ThreadPoolExecutor() as pool, service.open_client() as client:
        with hold_responses(service) as is_held:
            future = pool.submit(post, client)
            wait_until(is_held)
            kill_worker(service.process.pid)
            with pytest.raises(httpx.TransportError):
                future.result()
        with service.open_client() as second_client:
            books_before = find_by_isbn(second_client, body["isbn"])
            # The database may notice the end of the worker a little later.
            retry = next(
                response for response in send_repeatedly(partial(post, second_client)) if response.status_code != 409
            )
            repetition = post(second_client)
            books_after = find_by_isbn(second_client, body["isbn"])
    assert books_before == []
    assert (retry.status_code, is_replayed(retry)) == (201, False)
    assert (get_replayed_parts(repetition), is_replayed(repetition)) == (get_replayed_parts(retry), True)
    assert books_after == [repetition.json()]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite's writers wait for each other before they begin")
def test_a_repetition_of_a_request_in_flight_is_a_conflict(service: Service) -> None:
    body = build_book()
    post = partial(httpx.Client.post, url=BOOKS, json=body, headers={"Idempotency-Key": body["isbn"]})
    with service.open_client() as first_client, service.open_client() as second_client, ThreadPoolExecutor() as pool:
        with hold_responses(service) as is_held:
            future = pool.submit(post, first_client)
            wait_until(is_held)
            conflict = post(second_client)
        responses = [future.result(), post(second_client)]
    assert conflict.json() == {
        "error": {
            "code": "CONFLICT",
            "message": "A request with this Idempotency-Key is being answered",
            "requestId": conflict.headers["X-Request-ID"],
        }
    }
    assert conflict.status_code == 409
    require_replay(*responses)
