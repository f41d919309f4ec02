"""Large bodies of any address: their values are gone with the response."""

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
