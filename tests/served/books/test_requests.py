"""Books over the network: what the server itself does with requests and responses."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from tests.support.api_versions import VERSION_1, VERSION_2, APIVersion, with_each_version
from tests.support.books import build_book
from tests.support.pages import LIST_URL
from tests.support.server import Service, serve_library

MIB = 1024 * 1024
OTHER_DIGITS = ["١", "１", "²", "−1", "%FF"]


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[httpx.Client]:
    with service.open_client() as client:
        yield client


def test_head_is_get_without_a_body(client: httpx.Client) -> None:
    paths = ["", "/2", "/2?fields=id", "/987654321", "/two", "?limit=2", "?limit=0", "?shelf=1"]
    addresses = ["/", "/x", *(f"{version.books}{path}" for version in (VERSION_1, VERSION_2) for path in paths)]
    for address in addresses:
        get, head = (
            client.request(method, address, headers={"X-Request-ID": "head-and-get"}) for method in ("GET", "HEAD")
        )
        assert (address, head.status_code, head.content) == (address, get.status_code, b"")
        # Both have the time of their own.
        assert {**head.headers, "date": ""} == {**get.headers, "date": ""}


@with_each_version
def test_digits_other_than_ascii_are_no_integer(client: httpx.Client, version: APIVersion) -> None:
    for book_id in OTHER_DIGITS:
        for method in ("GET", "DELETE"):
            response = client.request(method, f"{version.books}/{book_id}")
            assert (book_id, version.parse_error(response)) == (book_id, (422, ["book_id"]))


def test_a_bulk_may_have_sixteen_mebibytes(client: httpx.Client) -> None:
    address = f"{LIST_URL}/bulk"
    body = json.dumps({"operations": [{"op": "create", "book": build_book()}]}).encode()
    parts = [body, *[b" " * MIB] * 15]
    responses = [
        client.post(f"{address}?dry_run=true", content=body.ljust(15 * MIB)),
        client.post(f"{address}?dry_run=true", content=iter(parts)),
        client.post(address, content=body.ljust(17 * MIB)),
        client.post(address, content=iter([*parts, b" " * MIB, b" " * MIB])),
        client.post(LIST_URL, content=body.ljust(2 * MIB)),
    ]
    assert [response.status_code for response in responses] == [200, 200, 413, 413, 413]


def test_the_time_of_creation_is_in_utc_on_a_server_in_tokyo(tmp_path: Path) -> None:
    with serve_library(tmp_path, TZ="Asia/Tokyo", PGTZ="Asia/Tokyo") as service, service.open_client() as client:
        before = datetime.now(UTC).replace(tzinfo=None)
        created_book = client.post("/api/books", json=build_book()).json()
        after = datetime.now(UTC).replace(tzinfo=None)
        read = client.get(f"/api/books/{created_book['id']}").json()
    assert before <= datetime.fromisoformat(created_book["created_at"]) <= after
    assert read == created_book
