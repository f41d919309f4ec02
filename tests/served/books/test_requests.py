"""Books over the network: what the server itself does with requests and responses."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from tests.support.books import build_book
from tests.support.corpus import CORPUS_FILE, collect_responses, drop_request_body
from tests.support.pages import LIST_URL
from tests.support.server import Service, serve_library

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[httpx.Client]:
    with service.open_client() as client:
        yield client


def test_head_is_get_without_a_body(client: httpx.Client) -> None:
    paths = ["", "/2", "/2?fields=id", "/987654321", "/two", "?limit=2", "?limit=0", "?shelf=1"]
    addresses = ["/", "/x", *(f"{home}/books{path}" for home in ("/api", "/api/v2") for path in paths)]
    for address in addresses:
        get, head = (
            client.request(method, address, headers={"X-Request-ID": "head-and-get"}) for method in ("GET", "HEAD")
        )
        assert (address, head.status_code, head.content) == (address, get.status_code, b"")
        # Both have the time of their own.
        assert {**head.headers, "date": ""} == {**get.headers, "date": ""}


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


def test_the_responses_of_version_1_do_not_change(tmp_path: Path) -> None:
    recorded_responses = json.loads(CORPUS_FILE.read_text(encoding="utf-8"))
    with serve_library(tmp_path) as service:
        current_responses = [drop_request_body(response) for response in collect_responses(service)]
    for response, expected in zip(current_responses, recorded_responses, strict=True):
        response["headers"] = {
            name: value for name, value in response["headers"].items() if name in expected["headers"]
        }
    assert current_responses == recorded_responses
