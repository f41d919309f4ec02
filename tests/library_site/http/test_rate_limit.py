"""How often a caller may ask, and what each answer tells of it."""

import logging
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from pytest_django import Settings
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from books.api.views import BookViewSet
from library_site.http.rate_limit import MAX_CALLERS, REDIS_TIMEOUT, LocalCounter, make_counter
from oauth.credentials import Credential
from oauth.throttling import CallerThrottle
from tests.support.books import new_book
from tests.support.redis_server import RedisServer, running_redis
from tests.support.serving import Service, serving

POLICY = '"default";q=3;w=60'


class Clock:
    """Seconds as the throttle reads them; they pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class ByHeader(BaseAuthentication):
    """Takes the word of `Key` for a credential, and of `User` for a user without one."""

    def authenticate(self, request: Request) -> tuple[User | None, Credential | None] | None:
        if "User" in request.headers:
            return User(pk=int(request.headers["User"])), None
        key = request.headers.get("Key")
        return (None, Credential(key, frozenset({"read", "write"}))) if key else None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(CallerThrottle, "timer", clock)
    return clock


@pytest.fixture
def limited(api: httpx.Client, clock: Clock, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> httpx.Client:
    """A client of a library that allows three requests a minute."""
    settings.API_RATE_LIMIT = (3, 60)
    settings.API_MIDDLEWARE = [*settings.API_MIDDLEWARE, "library_site.http.middleware.add_rate_limit_headers"]
    monkeypatch.setattr(BookViewSet, "throttle_classes", [CallerThrottle])
    monkeypatch.setattr(BookViewSet, "authentication_classes", [ByHeader])
    make_counter.cache_clear()
    return client("127.0.0.1")


def client(address: str) -> httpx.Client:
    """A caller at that address."""
    from library_site.wsgi import build_application, pages_handler

    transport = httpx.WSGITransport(build_application(pages_handler), remote_addr=address)
    return httpx.Client(transport=transport, base_url="http://127.0.0.1")


@pytest.fixture
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    if not shutil.which("redis-server"):
        pytest.skip("Redis is not on this machine")
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def by_redis(redis: RedisServer, settings: Settings) -> RedisServer:
    settings.REDIS_URL = redis.url
    return redis


def used_up(client: httpx.Client, **options: Any) -> bool:
    """Whether a new caller is let through three times, and then no more."""
    statuses = [client.get("/api/books", **options).status_code for _ in range(4)]
    return statuses == [200, 200, 200, 429]


def told(answer: httpx.Response) -> tuple[str | None, str | None, str | None]:
    """What the answer says of the limit."""
    headers = answer.headers
    return headers.get("RateLimit-Policy"), headers.get("RateLimit"), headers.get("Retry-After")


def test_no_limit_is_set_by_default(api: httpx.Client) -> None:
    assert told(api.get("/api/books")) == (None, None, None)


def test_each_answer_tells_what_is_left(limited: httpx.Client, clock: Clock) -> None:
    first = limited.get("/api/books")
    clock.now += 17.5
    second = limited.get("/api/books")
    assert told(first) == (POLICY, '"default";r=2;t=60', None)
    assert told(second) == (POLICY, '"default";r=1;t=43', None)


def test_a_caller_beyond_the_limit_is_refused(limited: httpx.Client, clock: Clock) -> None:
    assert used_up(limited)
    clock.now += 59.9
    refused = limited.get("/api/books")
    assert refused.status_code == 429
    assert refused.json() == {"detail": "Request was throttled. Expected available in 1 second."}
    assert told(refused) == (POLICY, '"default";r=0;t=1', "1")


def test_who_waits_as_long_as_told_is_let_in(limited: httpx.Client, clock: Clock) -> None:
    assert used_up(limited)
    clock.now += int(limited.get("/api/books").headers["Retry-After"])
    assert used_up(limited)


def test_a_window_begins_with_its_first_request(limited: httpx.Client, clock: Clock) -> None:
    assert used_up(limited)
    clock.now += 1000
    assert told(limited.get("/api/books")) == (POLICY, '"default";r=2;t=60', None)


@pytest.mark.parametrize(
    ("method", "address", "content", "media_type", "status"),
    [
        ("POST", "/api/books", b"{}", "application/json", 422),
        ("POST", "/api/books", b"{}", "text/plain", 415),
        ("POST", "/api/books", b" " * 1048577, "application/json", 413),
        ("GET", "/api/books/0", b"", "application/json", 404),
        ("HEAD", "/api/books", b"", "application/json", 200),
        ("OPTIONS", "/api/books", b"", "application/json", 204),
    ],
)
def test_whatever_is_answered_counts_and_tells(
    limited: httpx.Client, method: str, address: str, content: bytes, media_type: str, status: int
) -> None:
    headers = {"Content-Type": media_type}
    answers = [limited.request(method, address, content=content, headers=headers) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [status, status, status, 429]
    assert told(answers[0]) == (POLICY, '"default";r=2;t=60', None)


def test_a_304_tells_too(limited: httpx.Client) -> None:
    created = limited.post("/api/books", json=new_book())
    answer = limited.get(created.headers["Location"], headers={"If-None-Match": created.headers["ETag"]})
    assert (answer.status_code, *told(answer)) == (304, POLICY, '"default";r=1;t=60', None)


def test_addresses_are_counted_apart(limited: httpx.Client) -> None:
    assert used_up(limited)
    assert used_up(client("192.0.2.7"))


def test_addresses_of_one_ipv6_network_count_as_one(limited: httpx.Client) -> None:
    assert used_up(client("2001:db8:0:1::1"))
    assert client("2001:db8:0:1:ffff::2").get("/api/books").status_code == 429
    assert used_up(client("2001:db8:0:2::1"))


def test_ipv4_is_the_same_by_way_of_ipv6(limited: httpx.Client) -> None:
    assert used_up(client("::ffff:192.0.2.1"))
    assert client("192.0.2.1").get("/api/books").status_code == 429
    assert used_up(client("::ffff:192.0.2.2"))


def test_a_socket_without_addresses_is_one_caller(limited: httpx.Client) -> None:
    assert used_up(client(""))


def test_a_forwarded_address_is_not_believed(limited: httpx.Client) -> None:
    assert used_up(limited)
    assert limited.get("/api/books", headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 429


def test_a_forwarded_address_is_believed_of_known_proxies(limited: httpx.Client, settings: Settings) -> None:
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": 1}
    assert used_up(limited, headers={"X-Forwarded-For": "198.51.100.1, 192.0.2.1"})
    assert limited.get("/api/books", headers={"X-Forwarded-For": "203.0.113.1, 192.0.2.1"}).status_code == 429
    assert used_up(limited, headers={"X-Forwarded-For": "192.0.2.1, 198.51.100.1"})


@pytest.mark.parametrize("name", ["Key", "User"])
def test_a_credential_is_counted_wherever_it_comes_from(limited: httpx.Client, name: str) -> None:
    assert used_up(limited, headers={name: "1"})
    assert client("192.0.2.1").get("/api/books", headers={name: "1"}).status_code == 429
    assert used_up(limited, headers={name: "2"})
    assert used_up(limited)


def test_a_process_remembers_no_more_callers_than_it_can_hold() -> None:
    own = LocalCounter(seconds=60)
    own.count("first", now=0.0)
    for number in range(MAX_CALLERS):
        own.count(str(number), now=1.0)
    assert len(own.windows) == MAX_CALLERS
    assert own.count("first", now=2.0).requests == 1
    assert own.count("last", now=100.0).requests == 1
    assert len(own.windows) == 1


def test_no_two_threads_are_given_the_same_place() -> None:
    own = LocalCounter(seconds=60)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            counted = list(pool.map(lambda _: own.count("caller", now=0.0).requests, range(20_000)))
    finally:
        sys.setswitchinterval(usual)
    assert sorted(counted) == list(range(1, 20_001))


def test_redis_counts_as_the_process_does(limited: httpx.Client, by_redis: RedisServer) -> None:
    assert told(limited.get("/api/books")) == (POLICY, '"default";r=2;t=60', None)
    assert [limited.get("/api/books").status_code for _ in range(3)] == [200, 200, 429]
    [key] = by_redis.keys()
    by_redis.client.pexpire(key, 1500)
    assert told(limited.get("/api/books")) == (POLICY, '"default";r=0;t=2', "2")


def test_redis_is_told_no_secret(limited: httpx.Client, by_redis: RedisServer) -> None:
    limited.get("/api/books", headers={"Key": "open-sesame"})
    [key] = by_redis.keys()
    assert key.startswith("library:rate:60:")
    assert "sesame" not in key
    assert 0 < by_redis.client.ttl(key) <= 60


def test_another_limit_begins_anew(limited: httpx.Client, by_redis: RedisServer, settings: Settings) -> None:
    settings.API_RATE_LIMIT = (3, 86400)
    assert used_up(limited)
    settings.API_RATE_LIMIT = (3, 60)
    assert used_up(limited)


def test_while_redis_is_away_the_process_counts(
    limited: httpx.Client, by_redis: RedisServer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    limited.get("/api/books")
    by_redis.stop()
    assert used_up(limited)
    clock.now += 30
    assert limited.get("/api/books").status_code == 429
    by_redis.start()
    clock.now += 0.5
    assert limited.get("/api/books").status_code == 429
    clock.now += 0.5
    assert told(limited.get("/api/books")) == (POLICY, '"default";r=2;t=60', None)
    assert [
        (record.levelno, record.name) for record in caplog.records if record.name == "library_site.http.rate_limit"
    ] == [
        (logging.ERROR, "library_site.http.rate_limit"),
        (logging.WARNING, "library_site.http.rate_limit"),
    ]


def test_a_redis_that_hangs_holds_up_one_request(limited: httpx.Client, by_redis: RedisServer) -> None:
    by_redis.process.send_signal(signal.SIGSTOP)
    try:
        started = time.monotonic()
        assert used_up(limited)
        assert time.monotonic() - started < 4 * REDIS_TIMEOUT
    finally:
        by_redis.process.send_signal(signal.SIGCONT)


def exactly(service: Service, amount: int) -> list[httpx.Response]:
    """Sends three times as many requests as are allowed, by sixteen at once; answers those let through."""
    with service.client() as client, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: client.get("/api/books/1"), range(3 * amount)))
    assert Counter(answer.status_code for answer in answers) == {200: amount, 429: 2 * amount}
    return [answer for answer in answers if answer.status_code == 200]


def places(answers: list[httpx.Response]) -> list[int]:
    """The `r` of each answer, in order."""
    return sorted(int(answer.headers["RateLimit"].split(";")[1].removeprefix("r=")) for answer in answers)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Service]:
    """One process of eight threads that counts by itself."""
    with serving(tmp_path, API_RATE_LIMIT="100/hour") as service:
        yield service


def test_threads_let_exactly_as_many_through(alone: Service) -> None:
    assert places(exactly(alone, 100)) == list(range(100))


def test_processes_let_exactly_as_many_through(tmp_path: Path, redis: RedisServer) -> None:
    with serving(tmp_path, API_RATE_LIMIT="100/hour", REDIS_URL=redis.url, WEB_CONCURRENCY="2") as service:
        assert places(exactly(service, 100)) == list(range(100))


def test_what_is_no_book_is_not_counted(alone: Service) -> None:
    with alone.client() as client:
        for address in ("/", "/docs", "/openapi.json", "/admin/", "/api/nothing"):
            assert told(client.get(address)) == (None, None, None)
        assert client.get("/api/books").headers["RateLimit"] == '"default";r=99;t=3600'


def test_the_document_tells_of_a_limit(alone: Service) -> None:
    with alone.client() as client:
        paths = client.get("/openapi.json").json()["paths"]
    documented = {
        address: {"429" in operation["responses"] for operation in paths[address].values()} for address in paths
    }
    assert documented.pop("/") == {False}
    assert set(map(frozenset, documented.values())) == {frozenset({True})}
