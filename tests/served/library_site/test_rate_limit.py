"""How many requests a caller may send, and what each response says about the limit."""

import logging
import signal
import socket
import subprocess
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings
from redis import Redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from books.api.views import BookViewSet
from library_site.deployment.checks import check_redis_answers
from library_site.http import callers
from library_site.monitoring.sources import read_redis
from library_site.rate_limit import counters
from library_site.rate_limit.counters import build_counter, get_counter
from library_site.rate_limit.redis_windows import REDIS_RETRY_AFTER, REDIS_TIMEOUT, RedisCounter
from library_site.rate_limit.windows import MAX_CALLERS, LocalCounter
from oauth.api_keys import create_key
from oauth.credentials import Credential
from oauth.scopes import ALL_SCOPES, PERMISSIONS
from tests.support.applications import open_client
from tests.support.books import build_book
from tests.support.failures import build_error
from tests.support.rate_limit import count_requests
from tests.support.server import Service, serve_library
from tests.support.settings import override_by

POLICY = '"default";q=3;w=60'
READ = frozenset({"read"})


class Clock:
    """A clock for the throttle, in seconds; a test sets it forward."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class RedisServer:
    """A server on a Unix socket. It can be stopped and started again, and loses its data when it stops."""

    def __init__(self, folder: Path) -> None:
        self.url = f"unix://{folder / 'redis.sock'}"
        self.command = ["redis-server", "--port", "0", "--unixsocket", str(folder / "redis.sock"), "--save", ""]
        # Tries for ten seconds, because the server needs a moment until it listens.
        self.client: Redis = Redis.from_url(self.url, retry=Retry(ConstantBackoff(0.05), 200))

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        self.client.ping()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def list_keys(self) -> list[str]:
        return [key.decode() for key in self.client.scan_iter()]


class HeaderAuthentication(BaseAuthentication):
    """Authenticates the header `Key` as a credential, and the header `User` as a user without a credential."""

    def authenticate(self, request: Request) -> tuple[User | None, Credential | None] | None:
        if "User" in request.headers:
            return User.objects.get_or_create(username=request.headers["User"])[0], None
        key = request.headers.get("Key")
        return (None, Credential(key, ALL_SCOPES, 0, permissions=PERMISSIONS)) if key else None


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limited(public: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> httpx.Client:
    """A client of a library that allows three requests a minute, and in which every credential is valid."""
    monkeypatch.setattr(BookViewSet, "authentication_classes", [HeaderAuthentication])
    return open_client("127.0.0.1")


@pytest.fixture
def public(api: httpx.Client, clock: Clock, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> httpx.Client:
    """A client of a library that allows three requests a minute."""
    settings.API_RATE_LIMIT = (3, 60)
    count_requests(monkeypatch, clock)
    build_counter.cache_clear()
    return open_client("127.0.0.1")


@contextmanager
def start_redis(folder: Path) -> Iterator[RedisServer]:
    server = RedisServer(folder)
    server.start()
    yield server
    server.stop()
    server.client.close()


@pytest.fixture
def redis(redis_server: str, tmp_path: Path) -> Iterator[RedisServer]:
    with start_redis(tmp_path) as server:
        yield server


@pytest.fixture
def redis_counter(redis: RedisServer, settings: Settings) -> RedisServer:
    settings.REDIS_URL = redis.url
    return redis


def uses_up_limit(client: httpx.Client, **options: Any) -> bool:
    """Tells whether the caller gets three requests answered and the fourth refused."""
    statuses = [client.get("/api/books", **options).status_code for _ in range(4)]
    return statuses == [200, 200, 200, 429]


def parse_limit_headers(response: httpx.Response) -> tuple[str | None, str | None, str | None]:
    """Returns RateLimit-Policy, RateLimit and Retry-After."""
    headers = response.headers
    return headers.get("RateLimit-Policy"), headers.get("RateLimit"), headers.get("Retry-After")


def test_no_limit_is_set_by_default(api: httpx.Client) -> None:
    assert parse_limit_headers(api.get("/api/books")) == (None, None, None)


def test_each_response_says_how_many_requests_remain(limited: httpx.Client, clock: Clock) -> None:
    first = limited.get("/api/books")
    clock.now += 17.5
    second = limited.get("/api/books")
    assert parse_limit_headers(first) == (POLICY, '"default";r=2;t=60', None)
    assert parse_limit_headers(second) == (POLICY, '"default";r=1;t=43', None)


def test_a_caller_beyond_the_limit_is_refused_until_the_window_ends(limited: httpx.Client, clock: Clock) -> None:
    assert uses_up_limit(limited)
    clock.now += 59.9
    refused = limited.get("/api/books")
    assert refused.status_code == 429
    assert refused.json() == {"detail": "Request was throttled. Expected available in 1 second."}
    assert parse_limit_headers(refused) == (POLICY, '"default";r=0;t=1', "1")
    clock.now += int(refused.headers["Retry-After"])
    assert uses_up_limit(limited)
    # A window begins with its first request.
    clock.now += 1000
    assert parse_limit_headers(limited.get("/api/books")) == (POLICY, '"default";r=2;t=60', None)


def test_version_2_says_in_its_structure_how_long_to_wait(public: httpx.Client) -> None:
    address = "/api/v2/books"
    assert uses_up_limit(public)
    responses = [
        public.get(f"{address}/0"),
        public.get(f"{address}/x"),
        public.post(address, content=b" " * (1024 * 1024 + 1)),
        public.post(address, content=b"{}", headers={"Content-Type": "text/plain"}),
    ]
    for response in responses:
        message = f"Request was throttled. Expected available in {response.headers['Retry-After']} seconds."
        expected = build_error("RATE_LIMIT", message, request_id=response.headers["X-Request-ID"])
        assert (response.status_code, response.json()) == (429, expected)
    earlier_errors = [public.delete(address), public.get("/api/v9/books"), public.get("/api/v2/nothing")]
    assert [response.status_code for response in earlier_errors] == [405, 400, 404]


def test_a_file_of_all_books_is_one_request(limited: httpx.Client) -> None:
    assert limited.get("/api/v2/books", headers={"Accept": "text/csv"}).headers["RateLimit"] == '"default";r=2;t=60'


def test_every_response_counts_and_has_the_headers(limited: httpx.Client) -> None:
    for number, (method, address, content, media_type, status) in enumerate(
        (
            ("POST", "/api/books", b"{}", "application/json", 422),
            ("POST", "/api/books", b"{}", "text/plain", 415),
            ("POST", "/api/books", b" " * 1048577, "application/json", 413),
            ("GET", "/api/v2/books?nonsense=1", b"", "application/json", 400),
            ("OPTIONS", "/api/books", b"", "application/json", 204),
        )
    ):
        caller = {"Content-Type": media_type, "Key": str(number)}
        response = limited.request(method, address, content=content, headers=caller)
        assert (response.status_code, *parse_limit_headers(response)) == (status, POLICY, '"default";r=2;t=60', None)
        assert limited.get("/api/books", headers=caller).headers["RateLimit"] == '"default";r=1;t=60'
    created = limited.post("/api/books", json=build_book())
    response = limited.get(created.headers["Location"], headers={"If-None-Match": created.headers["ETag"]})
    assert (response.status_code, *parse_limit_headers(response)) == (304, POLICY, '"default";r=1;t=60', None)


def test_each_address_has_its_own_count(limited: httpx.Client) -> None:
    """One network of IPv6 counts as one address, and so does an IPv4 address that is mapped; a socket has none."""
    for address, same, other in (
        ("127.0.0.1", "127.0.0.1", "192.0.2.7"),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", "2001:db8:0:2::1"),
        ("::ffff:192.0.2.1", "192.0.2.1", "::ffff:192.0.2.2"),
        ("", "", "192.0.2.9"),
    ):
        assert uses_up_limit(open_client(address))
        assert open_client(same).get("/api/books").status_code == 429
        assert uses_up_limit(open_client(other))


def test_a_forwarded_address_is_trusted_from_known_proxies_alone(limited: httpx.Client, settings: Settings) -> None:
    assert uses_up_limit(limited)
    assert limited.get("/api/books", headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 429
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": 1}
    assert uses_up_limit(limited, headers={"X-Forwarded-For": "198.51.100.1, 192.0.2.1"})
    assert limited.get("/api/books", headers={"X-Forwarded-For": "203.0.113.1, 192.0.2.1"}).status_code == 429
    assert uses_up_limit(limited, headers={"X-Forwarded-For": "192.0.2.1, 198.51.100.1"})


def test_a_credential_is_counted_wherever_it_comes_from(limited: httpx.Client) -> None:
    for name in ("Key", "User"):
        assert uses_up_limit(limited, headers={name: "1"}), name
        assert open_client("192.0.2.1").get("/api/books", headers={name: "1"}).status_code == 429, name
        assert uses_up_limit(limited, headers={name: "2"}), name
    assert uses_up_limit(limited)


def test_with_fewer_forwarded_addresses_than_proxies_the_peer_counts(
    limited: httpx.Client, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    callers.report_missing_proxies.cache_clear()
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": 2}
    addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"]
    responses = [limited.get("/api/books", headers={"X-Forwarded-For": address}) for address in addresses]
    assert [response.status_code for response in responses] == [200, 200, 200, 429]
    assert caplog.text.count("fewer proxies than NUM_PROXIES, which is 2") == 1


def test_a_forwarded_text_that_is_no_address_is_not_used(limited: httpx.Client, settings: Settings) -> None:
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": 1}
    assert uses_up_limit(limited)
    for entry in ("", "unknown", "192.0.2.1:80", "_hidden"):
        headers = {"X-Forwarded-For": f"192.0.2.1, {entry}"}
        assert limited.get("/api/books", headers=headers).status_code == 429, entry


REFUSED: dict[str, tuple[str, str, dict[str, str], int]] = {
    "method": ("DELETE", "/api/v2/books", {}, 405),
    "unknown method": ("BREW", "/api/books/1", {}, 405),
    "version": ("GET", "/api/v9/books", {}, 400),
    "key": ("GET", "/api/books", {"X-API-Key": "wrong"}, 401),
    "no credential": ("GET", "/api/v2/webhooks", {}, 401),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_refusals_count_by_address(public: httpx.Client, refused: tuple[str, str, dict[str, str], int]) -> None:
    method, address, headers, status = refused
    responses = [public.request(method, address, headers=headers) for _ in range(4)]
    # The refusal comes before the limit.
    assert [response.status_code for response in responses] == [status] * 4
    remaining = ['"default";r=2;t=60', '"default";r=1;t=60', '"default";r=0;t=60', '"default";r=0;t=60']
    assert [parse_limit_headers(response) for response in responses] == [(POLICY, limit, None) for limit in remaining]
    assert public.get("/api/books").status_code == 429
    assert open_client("192.0.2.7").get("/api/books").status_code == 200


def test_a_credential_without_the_scope_counts_its_address(public: httpx.Client) -> None:
    """A valid credential has a limit of its own, also at an address that is beyond its limit."""
    headers = {"X-API-Key": create_key(User.objects.create_user("reader"), "a program", READ, timezone.now())[1]}
    assert [public.delete("/api/books/1", headers=headers).status_code for _ in range(4)] == [403] * 4
    assert public.get("/api/books").status_code == 429
    assert uses_up_limit(public, headers=headers)


def test_a_process_remembers_no_more_callers_than_it_can_hold() -> None:
    counter = LocalCounter(seconds=60)
    counter.count("first", now=0.0)
    for number in range(MAX_CALLERS):
        counter.count(str(number), now=1.0)
    assert len(counter.windows) == MAX_CALLERS
    assert counter.count("first", now=2.0).requests == 1
    assert counter.count("last", now=100.0).requests == 1
    assert len(counter.windows) == 1


class InterruptedWindows(OrderedDict[str, tuple[int, float]]):
    """Lets another thread run whenever a window was read."""

    def get(self, *arguments: Any) -> Any:
        window = super().get(*arguments)
        # A call of the system gives the interpreter's lock up.
        Path().stat()
        return window


def test_no_two_threads_get_the_same_count() -> None:
    counter = LocalCounter(seconds=60)
    counter.windows = InterruptedWindows()
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: counter.count("caller", now=0.0).requests, range(400)))
    assert sorted(counts) == list(range(1, 401))


class SlowCounter(LocalCounter):
    """Lets other threads run before it is there."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        for _ in range(1000):
            Path().stat()


def test_threads_that_are_the_first_to_count_share_a_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "LocalCounter", SlowCounter)
    barrier = Barrier(8)

    def begin_together(seconds: int) -> LocalCounter:
        barrier.wait()
        return get_counter("", seconds)

    build_counter.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(begin_together, [60] * 8))
    build_counter.cache_clear()
    assert len({*map(id, found)}) == 1


def test_redis_counts_as_the_process_does(limited: httpx.Client, redis_counter: RedisServer) -> None:
    assert parse_limit_headers(limited.get("/api/books")) == (POLICY, '"default";r=2;t=60', None)
    assert [limited.get("/api/books").status_code for _ in range(3)] == [200, 200, 429]
    [key] = redis_counter.list_keys()
    redis_counter.client.pexpire(key, 1500)
    assert parse_limit_headers(limited.get("/api/books")) == (POLICY, '"default";r=0;t=2', "2")
    redis_counter.client.delete(key)
    # It stores no secret.
    limited.get("/api/books", headers={"Key": "open-sesame"})
    [key] = redis_counter.list_keys()
    assert key.startswith("library:rate:60:")
    assert "sesame" not in key
    assert 0 < redis_counter.client.ttl(key) <= 60


def test_another_limit_begins_anew(limited: httpx.Client, redis_counter: RedisServer, settings: Settings) -> None:
    settings.API_RATE_LIMIT = (3, 86400)
    assert uses_up_limit(limited)
    settings.API_RATE_LIMIT = (3, 60)
    assert uses_up_limit(limited)


def test_while_redis_is_away_the_process_counts(
    limited: httpx.Client, redis_counter: RedisServer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    limited.get("/api/books")
    redis_counter.stop()
    assert uses_up_limit(limited)
    clock.now += 30
    assert limited.get("/api/books").status_code == 429
    redis_counter.start()
    clock.now += 0.5
    assert limited.get("/api/books").status_code == 429
    clock.now += 0.5
    assert parse_limit_headers(limited.get("/api/books")) == (POLICY, '"default";r=2;t=60', None)
    assert [(record.levelno, record.name) for record in caplog.records if record.name == "library_site.rate_limit"] == [
        (logging.ERROR, "library_site.rate_limit"),
        (logging.WARNING, "library_site.rate_limit"),
    ]


def test_a_redis_that_hangs_delays_only_one_request(limited: httpx.Client, redis_counter: RedisServer) -> None:
    redis_counter.process.send_signal(signal.SIGSTOP)
    try:
        start = time.monotonic()
        assert uses_up_limit(limited)
        assert time.monotonic() - start < 4 * REDIS_TIMEOUT
    finally:
        redis_counter.process.send_signal(signal.SIGCONT)


def count_connections(listener: socket.socket) -> int:
    """The number of connections that were opened since the last call."""
    count = 0
    with suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            count += 1
    return count


def test_one_thread_in_a_second_waits_for_a_redis_that_hangs() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener, ThreadPoolExecutor(16) as pool:
        listener.settimeout(0)
        counter = RedisCounter(f"redis://127.0.0.1:{listener.getsockname()[1]}/0", seconds=60)

        def count_in_all_threads(now: float) -> int:
            list(pool.map(lambda _: counter.count("caller", now), range(64)))
            return count_connections(listener)

        counter.count("caller", now=0.0)
        assert count_connections(listener) == 1
        assert count_in_all_threads(0.0 + REDIS_RETRY_AFTER / 2) == 0
        assert count_in_all_threads(0.0 + REDIS_RETRY_AFTER) == 1
        assert counter.count("caller", now=0.0 + REDIS_RETRY_AFTER).requests == 130


def test_redis_is_told_of_a_request_once() -> None:
    """A second try would count it twice, where Redis has counted it and its response is lost."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        told = pool.submit(count_scripts, listener)
        counter = RedisCounter(f"redis://127.0.0.1:{listener.getsockname()[1]}", 60)
        assert counter.count("caller", now=0).requests == 1
        with socket.create_connection(listener.getsockname()) as client:
            client.sendall(END)
        assert told.result() == 1


END = b"END"


def count_scripts(listener: socket.socket) -> int:
    """Ends each connection when it brings a script; returns at one that brings END."""
    count, data = 0, b""
    while data != END:
        client, _ = listener.accept()
        with client:
            while (data := client.recv(4096)) not in (b"", END) and b"EVALSHA" not in data:
                client.sendall(b"+OK\r\n" * data.count(b"*"))
            count += b"EVALSHA" in data
    return count


def test_a_scrape_says_whether_redis_answers(settings: Settings, redis: RedisServer) -> None:
    def read_state() -> list[float]:
        return [sample.value for metric in read_redis() for sample in metric.samples]

    assert read_state() == []
    settings.REDIS_URL = redis.url
    assert read_state() == [1]
    redis.stop()
    assert read_state() == [0]


LIMITED = {"API_RATE_LIMIT": "9/second", "LIBRARY_PROCESS": "web"}


def test_a_server_says_at_the_start_that_redis_does_not_answer(redis: RedisServer) -> None:
    with override_by({**LIMITED, "REDIS_URL": redis.url}):
        assert not list(check_redis_answers(None))
        redis.stop()
        [warning] = check_redis_answers(None)
    assert (warning.id, warning.is_serious()) == ("library_site.W015", False)
    for process, count in (("worker", 0), ("command", 0), ("doctor", 1)):
        with override_by({**LIMITED, "REDIS_URL": "redis://127.0.0.1:1", "LIBRARY_PROCESS": process}):
            assert len([*check_redis_answers(None)]) == count


@pytest.fixture(scope="module")
def limited_service(redis_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service of two processes, which count in Redis.

    It is behind two proxies, so that each test can have addresses of its own.
    """
    folder = tmp_path_factory.mktemp("limited")
    settings = {"API_RATE_LIMIT": "100/hour", "NUM_PROXIES": "2", "WEB_CONCURRENCY": "2"}
    with start_redis(folder) as redis, serve_library(folder, REDIS_URL=redis.url, **settings) as service:
        yield service


def test_processes_together_keep_the_limit_exactly(limited_service: Service) -> None:
    headers = {"X-Forwarded-For": "192.0.2.10, 198.51.100.1"}
    with limited_service.open_client() as client, ThreadPoolExecutor(16) as pool:
        responses = list(pool.map(lambda _: client.get("/api/books/1", headers=headers), range(300)))
    assert Counter(response.status_code for response in responses) == {200: 100, 429: 200}
    remaining = [response.headers["RateLimit"].split(";")[1] for response in responses if response.is_success]
    assert {*remaining} == {f"r={number}" for number in range(100)}


def test_addresses_outside_the_api_are_not_counted(limited_service: Service) -> None:
    with limited_service.open_client() as client:
        for address in ("/", "/docs", "/openapi.json", "/admin/", "/api/nothing"):
            assert parse_limit_headers(client.get(address)) == (None, None, None)
        assert client.get("/api/books").headers["RateLimit"] == '"default";r=99;t=3600'


def test_the_document_describes_the_limit(limited_service: Service) -> None:
    with limited_service.open_client() as client:
        paths = client.get("/openapi.json").json()["paths"]
    documented = {
        address: {"429" in operation["responses"] for operation in paths[address].values()} for address in paths
    }
    assert documented.pop("/") == {False}
    assert set(map(frozenset, documented.values())) == {frozenset({True})}


def test_lines_of_forwarded_addresses_are_one_list(limited_service: Service) -> None:
    """The server joins them; with the last line alone, a client could choose its address."""
    with limited_service.open_client() as client:
        addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
        responses = [
            client.get("/api/books", headers=[("X-Forwarded-For", address), ("X-Forwarded-For", "198.51.100.1")])
            for address in [*addresses, *addresses]
        ]
    assert [response.headers["RateLimit"].split(";")[1] for response in responses] == ["r=99"] * 3 + ["r=98"] * 3
