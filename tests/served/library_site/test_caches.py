"""A cache in front of the library that has no settings of its own serves nothing that is gone, or another's."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.server import Service, reserve_port, run_command, serve_library
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("nginx", "varnish")


# nginx stores nothing until it is told which statuses. Without a master it runs as the user of the suite.
NGINX = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/parts;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    proxy_cache_path {folder}/cache keys_zone=library:1m;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass {url};
            proxy_set_header Host $host;
            proxy_cache library;
            proxy_cache_valid any 1m;
        }}
    }}
}}
"""


def build_nginx_command(folder: Path, port: int, url: str) -> list[str]:
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, url=url))
    return ["nginx", "-e", str(folder / "log"), "-c", str(folder / "nginx.conf")]


def build_varnish_command(folder: Path, port: int, url: str) -> list[str]:
    addresses = ["-a", f"127.0.0.1:{port}", "-b", url.removeprefix("http://")]
    return ["varnishd", "-F", "-j", "none", "-n", str(folder / "varnish"), *addresses]


CACHES = {"nginx": build_nginx_command, "varnish": build_varnish_command}


@contextmanager
def start_cache(name: str, folder: Path, service: Service) -> Iterator[httpx.Client]:
    """Yields a client of the cache."""
    with reserve_port() as port, (folder / "output").open("w") as output:
        process = subprocess.Popen(CACHES[name](folder, port, service.url), stdout=output, stderr=output)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                wait_until(lambda: is_ready(client))
                yield client
        finally:
            process.terminate()
            process.wait()


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.head("/").is_success
    except httpx.TransportError:
        return False


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
