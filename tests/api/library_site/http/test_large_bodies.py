"""Large bodies of any address: their values are gone with the response, and are parsed one after the other."""

import json
from collections.abc import Iterator

import httpx
import pytest

from library_site.api import viewsets
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
    rests = []
    # One of the requests may be the one after which garbage is collected.
    for _ in range(2):
        with memory.measure():
            response = api.request(method, address, content=body)
        rests.append(memory.rest)
        assert response.is_client_error
    assert max(rests) < 2**20


class CountingLock:
    """Counts how often it is taken."""

    count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("address", ["/api/books", "/api/v2/books/bulk"])
def test_large_bodies_are_parsed_one_after_the_other(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    lock = CountingLock()
    monkeypatch.setattr(viewsets, "LARGE_BODY_LOCK", lock)
    for size, count in ((viewsets.LARGE_BODY_BYTES, 0), (viewsets.LARGE_BODY_BYTES + 1, 1)):
        assert api.post(address, content=b"{}".ljust(size)).status_code == 422
        assert lock.count == count
