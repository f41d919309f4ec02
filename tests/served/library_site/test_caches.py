"""A cache in front of the library that has no settings of its own serves nothing that is gone, or another's."""

import os
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.caches import CACHES, start_cache
from tests.support.server import Service, run_command, serve_library

pytestmark = pytest.mark.usefixtures("nginx", "varnish")


@pytest.fixture(scope="module")
def protected_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serve_library(tmp_path_factory.mktemp("cached"), LIBRARY_ACCESS="protect-writes") as service:
        yield service


@pytest.fixture(scope="module")
def key(protected_service: Service) -> dict[str, str]:
    environment = os.environ | {"DATABASE_URL": protected_service.database_url}
    run_command(environment, "createsuperuser", "--noinput", "--username=ada", "--email=ada@library.example")
    text = run_command(environment, "create_api_key", "--user", "ada", "--scopes", "read write")
    return {"X-API-Key": text.split()[-1]}


@pytest.fixture(scope="module", params=CACHES)
def cache(request: Any, protected_service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with start_cache(request.param, tmp_path_factory.mktemp("cache"), protected_service) as client:
        yield client


def test_the_cache_stores_what_it_may(cache: httpx.Client) -> None:
    """Else the other tests would prove nothing."""
    assert len({cache.get("/").headers["X-Request-ID"] for _ in range(3)}) == 1


@pytest.mark.parametrize("home", ["/api", "/api/v2"])
def test_a_cache_serves_what_is_there_now(
    cache: httpx.Client, protected_service: Service, key: dict[str, str], home: str
) -> None:
    """A book that was missing is there after its creation, changed after a change, and gone after its deletion."""
    list_address, form = f"{home}/books?genre=Caches", build_book(genre="Caches", isbn=f"{cache.base_url}{home}")
    with protected_service.open_client() as client:
        last = client.post(f"{home}/books", json=form, headers=key).json()["id"]
        client.delete(f"{home}/books/{last}", headers=key)
    address = f"{home}/books/{last + 1}"

    def read() -> tuple[int, int]:
        """Returns the status of the book, and the number of books in the list."""
        return cache.get(address).status_code, cache.get(list_address).text.count('"id"')

    assert read() == (404, 0)
    assert cache.post(f"{home}/books", json=form, headers=key).status_code == 201
    assert read() == (200, 1)
    assert cache.put(address, json={**form, "title": "Changed"}, headers=key).status_code == 200
    assert cache.get(address).json()["title"] == "Changed"
    cache.delete(address, headers=key)
    assert read() == (404, 0)


@pytest.mark.parametrize("address", ["/api/books/1", "/api/books", "/api/v2/books/1", "/api/v2/books"])
def test_a_cache_serves_no_response_of_another_credential(
    cache: httpx.Client, key: dict[str, str], address: str
) -> None:
    for bad in ({"X-API-Key": "no-key"}, {"Authorization": "Bearer no-token"}):
        statuses = [cache.get(address, headers=headers).status_code for headers in ({}, key, bad, {}, key)]
        assert statuses == [200, 200, 401, 200, 200]


def test_a_cache_tells_versions_apart(cache: httpx.Client) -> None:
    for media_type, kind in (("application/json", list), ("application/vnd.library+json", dict)):
        assert isinstance(cache.get("/api/books?limit=1", headers={"Accept": media_type}).json(), kind)


def test_a_proxy_sends_the_host_of_the_target(cache: httpx.Client) -> None:
    """RFC 9112, 3.2.2. The library itself cannot know it."""
    own = f"127.0.0.1:{cache.base_url.port}"
    for target, host, status in ((own, "other.example", 200), ("other.example", own, 400), (own, own, 200)):
        with socket.create_connection(("127.0.0.1", cache.base_url.port or 0)) as connection:
            lines = [f"GET http://{target}/api/books/1 HTTP/1.1", f"Host: {host}", "Connection: close", "", ""]
            connection.sendall("\r\n".join(lines).encode())
            assert connection.makefile("rb").readline().split()[1] == b"%d" % status, (target, host)
