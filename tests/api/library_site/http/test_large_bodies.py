"""Bodies that are large, or not what their headers say: no failure, and nothing of them stays in memory."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.support.books import build_book
from tests.support.memory import Memory, trace_memory

# Some five MiB of values.
LARGE_BODY = json.dumps({**build_book(), "title": [[]] * 60_000}, separators=(",", ":")).encode()


@pytest.fixture
def memory() -> Iterator[Memory]:
    with trace_memory() as memory:
        yield memory


@pytest.mark.parametrize(
    ("method", "address", "body"),
    [
        ("POST", "/api/books", LARGE_BODY),
        ("PATCH", "/api/v2/books/1", LARGE_BODY),
        ("POST", "/api/v2/books", LARGE_BODY[:-1]),
    ],
    ids=["a new book", "a change", "malformed"],
)
def test_the_values_of_a_body_are_gone_with_its_answer(
    api: httpx.Client, memory: Memory, method: str, address: str, body: bytes
) -> None:
    api.request(method, address, content=b"{")
    with memory.measure():
        response = api.request(method, address, content=body)
    assert response.is_client_error
    assert memory.rest < 2**20


MEDIA_TYPES = [
    "application/json;x*=bogus''%41",
    "multipart/form-data;charset*=utf-8''%00",
    "text/plain;charset=hex",
    "application/json;charset=utf-7",
    "multipart/form-data;charset=undefined",
    "multipart/form-data;=",
    ';"',
]
REQUESTS = [("GET", "/api/books?author=+2AA-%41"), ("POST", "/api/books?%41"), ("POST", "/admin/login/?x=%41")]


def test_strange_parameters_harm_nothing(api: httpx.Client) -> None:
    for media_type in MEDIA_TYPES:
        for method, address in REQUESTS:
            response = api.request(method, address, headers={"Content-Type": media_type})
            assert response.status_code < 500, (media_type, method, address)


def test_a_body_cannot_say_it_is_larger_than_it_is(api: httpx.Client) -> None:
    response = api.post("/api/books", json=build_book(), headers={"Content-Length": str(2**63)})
    assert response.status_code == 413
