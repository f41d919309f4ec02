"""Idempotency-Key: one request, however often it is sent."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
from django.db import connection
from pytest_django import Settings

from books.models import StoredResponse
from tests.support.books import new_book
from tests.support.concurrency import at_once, until
from tests.support.logs import end_worker
from tests.support.pages import refused
from tests.support.serving import Service, serving

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

BOOKS = "/api/v2/books"
BULK = "/api/v2/books/bulk"
KEY = {"Idempotency-Key": "4c0e6a1f-9b8d-4e35-8f0a-1b2c3d4e5f60"}
OF_ANOTHER_REQUEST: tuple[int, str, list[str]] = (422, "VALIDATION_ERROR", [])

Caller = Callable[[str], httpx.Client]


@pytest.fixture
def caller(api: httpx.Client, application: "WSGIApplication") -> Iterator[Caller]:
    """Makes clients of other addresses."""
    clients: list[httpx.Client] = []

    def at(address: str) -> httpx.Client:
        transport = httpx.WSGITransport(app=application, remote_addr=address)
        clients.append(httpx.Client(transport=transport, base_url="http://127.0.0.1"))
        return clients[-1]

    yield at
    for client in clients:
        client.close()


def operations(*books: dict[str, Any]) -> dict[str, Any]:
    return {"operations": [{"op": "create", "book": book} for book in books]}


def replayed(answer: httpx.Response) -> bool:
    return bool(answer.headers.get("Idempotent-Replayed") == "true")


def told(answer: httpx.Response) -> tuple[object, ...]:
    """What an answer says that its repetition says too."""
    names = ("Content-Type", "Location", "ETag", "Link")
    return answer.status_code, answer.content, *(answer.headers.get(name) for name in names)


def require_replay(first: httpx.Response, again: httpx.Response) -> None:
    assert told(again) == told(first)
    assert (replayed(first), replayed(again)) == (False, True)


def amount(api: httpx.Client) -> int:
    """How many books there are."""
    return len(api.get(BOOKS).json()["results"])


def age(by: timedelta) -> None:
    """Lets time pass for what is kept."""
    for kept in StoredResponse.objects.all():
        kept.stored_at -= by
        kept.save()


def test_a_creation_sent_again_is_answered_again(api: httpx.Client) -> None:
    body = new_book()
    first, *later = [api.post(BOOKS, json=body, headers=KEY) for _ in range(3)]
    assert first.status_code == 201
    for again in later:
        require_replay(first, again)
    assert amount(api) == 1


@pytest.mark.parametrize(("address", "amount_after"), [(BULK, 2), (f"{BULK}?dry_run=true", 0)])
def test_a_bulk_sent_again_is_answered_again(api: httpx.Client, address: str, amount_after: int) -> None:
    body = operations(new_book(), new_book())
    first, again = [api.post(address, json=body, headers=KEY) for _ in range(2)]
    assert first.status_code == 200
    require_replay(first, again)
    assert amount(api) == amount_after


def test_the_first_answer_is_given_whatever_happened_since(api: httpx.Client) -> None:
    body = new_book()
    first = api.post(BOOKS, json=body, headers=KEY)
    api.patch(first.headers["Location"], json={"year": 2000})
    require_replay(first, api.post(BOOKS, json=body, headers=KEY))
    api.delete(first.headers["Location"])
    require_replay(first, api.post(BOOKS, json=body, headers=KEY))
    assert amount(api) == 0


def test_without_a_key_a_request_is_new(api: httpx.Client) -> None:
    body = new_book()
    assert [api.post(BOOKS, json=body).status_code for _ in range(2)] == [201, 409]


def test_each_key_is_of_one_request(api: httpx.Client) -> None:
    keys = ["a", "A", "a-", "~" * 255, "~" * 254, '"quoted"', "a,b"]
    answers = [api.post(BOOKS, json=new_book(), headers={"Idempotency-Key": key}) for key in keys]
    assert [(answer.status_code, replayed(answer)) for answer in answers] == [(201, False)] * len(keys)


@pytest.mark.parametrize("address", [BOOKS, BULK])
def test_a_key_is_not_for_another_request(api: httpx.Client, address: str) -> None:
    book = new_book()
    body = operations(book) if address == BULK else book
    first = api.post(address, json=body, headers=KEY)
    others = [
        api.post(address, json={**body, "shelf": 1}, headers=KEY),
        api.post(address, content=b"{", headers=KEY),
        api.post(address, headers=KEY),
        api.post(BULK if address == BOOKS else BOOKS, json=body, headers=KEY),
        api.post(BULK if address == BOOKS else f"{BULK}?dry_run=true", json=body, headers=KEY),
        api.post(f"{address}?shelf=1", json=body, headers=KEY),
    ]
    assert [refused(answer) for answer in others] == [OF_ANOTHER_REQUEST] * 6
    assert not any(replayed(answer) for answer in others)
    assert amount(api) == 1
    require_replay(first, api.post(address, json=body, headers=KEY))


def test_a_key_of_another_request_is_told_whole(api: httpx.Client) -> None:
    api.post(BOOKS, json=new_book(), headers=KEY)
    answer = api.post(BOOKS, json=new_book(), headers=KEY)
    assert answer.status_code == 422
    assert answer.json() == {
        "error": {
            "code": "VALIDATION_ERROR",
            "message": "This Idempotency-Key came with another request before",
            "requestId": answer.headers["X-Request-ID"],
        }
    }


def test_a_conflict_is_kept(api: httpx.Client) -> None:
    holder = api.post(BOOKS, json=new_book())
    body = new_book(isbn=holder.json()["isbn"])
    first = api.post(BOOKS, json=body, headers=KEY)
    api.delete(holder.headers["Location"])
    again = api.post(BOOKS, json=body, headers=KEY)
    assert refused(first) == (409, "CONFLICT", ["isbn"])
    require_replay(first, again)
    assert amount(api) == 0


def test_a_conflict_of_a_bulk_is_kept(api: httpx.Client) -> None:
    holder = api.post(BOOKS, json=new_book())
    body = operations(new_book(), new_book(isbn=holder.json()["isbn"]))
    first = api.post(BULK, json=body, headers=KEY)
    api.delete(holder.headers["Location"])
    again = api.post(BULK, json=body, headers=KEY)
    assert refused(first) == (409, "CONFLICT", ["1.isbn"])
    require_replay(first, again)
    assert amount(api) == 0


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
def test_a_refusal_is_kept(api: httpx.Client, address: str, body: bytes, status: int) -> None:
    first, again = [api.post(address, content=body, headers=KEY) for _ in range(2)]
    assert first.status_code == status
    require_replay(first, again)
    assert refused(api.post(address, json=new_book(), headers=KEY)) == OF_ANOTHER_REQUEST


@pytest.mark.parametrize("address", [BOOKS, BULK])
def test_a_failure_of_the_library_is_not_kept(api: httpx.Client, address: str) -> None:
    body = new_book() if address == BOOKS else operations(new_book())
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE books_book ADD COLUMN cellar integer DEFAULT 0 CHECK (cellar > 0)")
    failed = [api.post(address, json=body, headers=KEY) for _ in range(2)]
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE books_book DROP COLUMN cellar")
    mended = api.post(address, json=body, headers=KEY)
    assert [refused(answer) for answer in failed] == [(500, "INTERNAL_ERROR", [])] * 2
    assert (mended.is_success, replayed(mended)) == (True, False)
    require_replay(mended, api.post(address, json=body, headers=KEY))
    assert amount(api) == 1


def test_keys_of_two_addresses_do_not_meet(api: httpx.Client, caller: Caller) -> None:
    addresses = ["127.0.0.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8:0:1::1"]
    answers = [caller(address).post(BOOKS, json=new_book(), headers=KEY) for address in addresses]
    assert [(answer.status_code, replayed(answer)) for answer in answers] == [(201, False)] * 5
    assert amount(api) == 5


@pytest.mark.parametrize(
    ("one", "other"), [("192.0.2.1", "192.0.2.1"), ("192.0.2.1", "::ffff:192.0.2.1"), ("2001:db8::1", "2001:db8::2")]
)
def test_a_caller_may_send_again_by_another_connection(caller: Caller, one: str, other: str) -> None:
    body = new_book()
    require_replay(*(caller(address).post(BOOKS, json=body, headers=KEY) for address in (one, other)))


def test_a_forwarded_address_is_not_believed(api: httpx.Client) -> None:
    body = new_book()
    forwarded = [{**KEY, "X-Forwarded-For": address} for address in ("192.0.2.1", "192.0.2.2")]
    require_replay(*(api.post(BOOKS, json=body, headers=headers) for headers in forwarded))


def test_a_forwarded_address_is_believed_of_known_proxies(api: httpx.Client, settings: Settings) -> None:
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "NUM_PROXIES": 1}
    forwarded = [{**KEY, "X-Forwarded-For": address} for address in ("192.0.2.1", "192.0.2.2")]
    answers = [api.post(BOOKS, json=new_book(), headers=headers) for headers in forwarded]
    assert [(answer.status_code, replayed(answer)) for answer in answers] == [(201, False)] * 2


def test_an_answer_is_kept_for_a_day(api: httpx.Client) -> None:
    body = new_book()
    first = api.post(BOOKS, json=body, headers=KEY)
    age(by=timedelta(hours=24, minutes=-1))
    require_replay(first, api.post(BOOKS, json=body, headers=KEY))


def test_after_a_day_a_request_is_new(api: httpx.Client) -> None:
    first = api.post(BOOKS, json=new_book(), headers=KEY)
    age(by=timedelta(hours=24))
    body = new_book()
    second = api.post(BOOKS, json=body, headers=KEY)
    assert (second.status_code, replayed(second)) == (201, False)
    assert second.headers["Location"] != first.headers["Location"]
    require_replay(second, api.post(BOOKS, json=body, headers=KEY))


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
    body = new_book() if address == BOOKS else operations(new_book())
    answer = api.post(address, json=body, headers={b"Idempotency-Key": key})
    assert refused(answer) == (422, "VALIDATION_ERROR", ["Idempotency-Key"])
    assert amount(api) == 0


@pytest.mark.parametrize("key", [b"", "é".encode(), b"\xff", b"a" * 256], ids=["empty", "UTF-8", "Latin-1", "long"])
def test_the_server_refuses_a_bad_key(service: Service, key: bytes) -> None:
    with service.client() as client:
        answer = client.post(BOOKS, json=new_book(), headers={b"Idempotency-Key": key})
    assert refused(answer) == (422, "VALIDATION_ERROR", ["Idempotency-Key"])


@pytest.mark.parametrize("key", ["one", "a bad one"])
def test_a_key_on_another_method_is_not_heard(api: httpx.Client, key: str) -> None:
    headers = {"Idempotency-Key": key}
    address = api.post(BOOKS, json=new_book()).headers["Location"]
    answers = [
        api.get(address, headers=headers),
        api.put(address, json=new_book(), headers=headers),
        api.patch(address, json={"year": 2000}, headers=headers),
        api.patch(address, json={"year": 3000}, headers=headers),
        api.delete(address, headers=headers),
        api.delete(address, headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 204, 404]
    assert not any(replayed(answer) for answer in answers)
    assert answers[3].json()["year"] == 3000


def test_version_1_hears_no_key(api: httpx.Client) -> None:
    body = new_book()
    answers = [api.post("/api/books", json=body, headers=KEY) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 409]


def test_what_is_refused_before_it_is_read_does_not_use_a_key_up(api: httpx.Client) -> None:
    refusals = [
        api.post(BOOKS, content=b"a", headers={**KEY, "Content-Type": "text/plain"}),
        api.post(BOOKS, content=b" " * 2 * 2**20, headers=KEY),
    ]
    assert [answer.status_code for answer in refusals] == [415, 413]
    assert api.post(BOOKS, json=new_book(), headers=KEY).status_code == 201


def with_isbn(client: httpx.Client, isbn: str) -> list[dict[str, Any]]:
    books: list[dict[str, Any]] = client.get(BOOKS, params={"isbn": isbn}).json()["results"]
    return books


@pytest.mark.parametrize("address", [BOOKS, BULK])
def test_one_of_many_requests_with_one_key_is_carried_out(service: Service, address: str) -> None:
    for number in range(5):
        book, headers = new_book(), {"Idempotency-Key": f"{address}-{number}"}
        body = book if address == BOOKS else operations(book)
        post = partial(httpx.Client.post, url=address, json=body, headers=headers)
        answers = at_once(service, [post] * 12)
        carried_out = [answer for answer in answers if answer.is_success]
        others = [refused(answer) for answer in answers if not answer.is_success]
        assert others == [(409, "CONFLICT", [])] * (12 - len(carried_out))
        assert len({told(answer) for answer in carried_out}) == 1
        assert [replayed(answer) for answer in carried_out].count(False) == 1
        with service.client() as client:
            assert len(with_isbn(client, book["isbn"])) == 1
            again = post(client)
        assert (told(again), replayed(again)) == (told(carried_out[0]), True)


@contextmanager
def answers_held(service: Service) -> Iterator[Callable[[], bool]]:
    """Stops each request with a key when its book is written and its answer is not yet kept.

    Yields what tells whether one is stopped.
    """
    hold = held_on_postgresql if connection.vendor == "postgresql" else held_on_sqlite
    with hold(service.database_url) as is_held:
        yield is_held


@contextmanager
def held_on_postgresql(url: str) -> Iterator[Callable[[], bool]]:
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as observer:
        holder.execute("LOCK TABLE books_keptanswer IN EXCLUSIVE MODE")
        yield lambda: observer.execute("SELECT 1 FROM pg_locks WHERE NOT granted").rowcount > 0
        holder.rollback()


@contextmanager
def held_on_sqlite(url: str) -> Iterator[Callable[[], bool]]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0, isolation_level=None)) as holder:
        # Counts for hours.
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


def sent_for_a_while(post: Callable[[], httpx.Response]) -> Iterator[httpx.Response]:
    """The answers to one request, sent over and over for half a minute."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        yield post()


def test_a_request_that_died_is_carried_out_when_it_is_sent_again(tmp_path: Path) -> None:
    body = new_book()
    post = partial(httpx.Client.post, url=BOOKS, json=body, headers=KEY)
    with serving(tmp_path) as service, ThreadPoolExecutor() as pool, service.client() as client:
        with answers_held(service) as is_held:
            dying = pool.submit(post, client)
            until(is_held)
            end_worker(service.process.pid)
            with pytest.raises(httpx.TransportError):
                dying.result()
        with service.client() as anew:
            before = with_isbn(anew, body["isbn"])
            # The database may notice a little later that the worker is gone.
            retried = next(answer for answer in sent_for_a_while(partial(post, anew)) if answer.status_code != 409)
            again = post(anew)
            after = with_isbn(anew, body["isbn"])
    assert before == []
    assert (retried.status_code, replayed(retried)) == (201, False)
    assert (told(again), replayed(again)) == (told(retried), True)
    assert after == [again.json()]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite's writers wait for each other before they begin")
def test_a_request_in_flight_is_not_sent_again_meanwhile(service: Service) -> None:
    body = new_book()
    post = partial(httpx.Client.post, url=BOOKS, json=body, headers={"Idempotency-Key": body["isbn"]})
    with service.client() as one, service.client() as other, ThreadPoolExecutor() as pool:
        with answers_held(service) as is_held:
            first = pool.submit(post, one)
            until(is_held)
            meanwhile = post(other)
        later = [first.result(), post(other)]
    assert meanwhile.json() == {
        "error": {
            "code": "CONFLICT",
            "message": "A request with this Idempotency-Key is being answered",
            "requestId": meanwhile.headers["X-Request-ID"],
        }
    }
    assert meanwhile.status_code == 409
    require_replay(*later)


def test_a_method_in_small_letters_is_read_like_any_other(service: Service) -> None:
    body = new_book()
    headers = {"Content-Type": "application/json", "Idempotency-Key": body["isbn"]}
    address = httpx.URL(service.url)
    with closing(HTTPConnection(address.host, address.port)) as connection:
        connection.request("post", BOOKS, json.dumps(body), headers)
        answer = connection.getresponse()
        created = json.loads(answer.read())
    assert (answer.status, created["isbn"]) == (201, body["isbn"])
