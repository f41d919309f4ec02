"""Requests of version 1 and their recorded answers, which must stay equal to the byte.

`python -m tests.support.corpus` records them again. Run it only when the contract itself changes.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.support.books import build_book
from tests.support.server import SEEDED_BOOK_COUNT, Service, serve_library

CORPUS_FILE = Path(__file__).parent / "corpus.json"
TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}")
# Headers that depend on the time, the server or the HTML pages. The contract does not cover them.
VOLATILE_HEADERS = {"date", "server", "connection", "content-security-policy"}
NEW_BOOK_ID = SEEDED_BOOK_COUNT + 1
BOOK_URL, LIST_URL, PLAIN_TEXT = f"/api/books/{NEW_BOOK_ID}", "/api/books", {"Content-Type": "text/plain"}


class Request(NamedTuple):
    method: str
    address: str
    body: str | None = None
    headers: dict[str, str] | None = None


def generate_requests() -> Iterator[Request]:
    """Yields the requests in the order in which they must be sent.

    The ids of new books are predicted, so every creation that succeeds comes before those that fail.
    """
    yield Request("POST", LIST_URL, json.dumps(build_book(isbn="corpus-1", title="Żółw", year=-44)))
    ignored = {"id": 7, "available": False, "shelf": [1]}
    yield Request("POST", f"{LIST_URL}/", json.dumps({**build_book(isbn="corpus-2"), **ignored}))
    yield from generate_reads()
    yield from generate_lists()
    yield from generate_changes()
    yield from generate_refused_bodies("PUT", BOOK_URL)
    yield Request("DELETE", BOOK_URL, headers={"If-Match": '"other"'})
    for _ in range(2):
        yield Request("DELETE", BOOK_URL)
    yield Request("GET", BOOK_URL)
    yield Request("POST", LIST_URL, json.dumps(build_book(isbn="corpus-2")))
    yield from generate_refused_bodies("POST", LIST_URL)
    yield from (Request(method, address) for method in ("PATCH", "OPTIONS") for address in ("/", LIST_URL, BOOK_URL))
    yield from (Request("DELETE", address) for address in ("/", LIST_URL, "/api/shelves"))


def generate_reads() -> Iterator[Request]:
    yield from (
        Request("GET", f"/api/books/{book_id}")
        for book_id in (NEW_BOOK_ID, f"0{NEW_BOOK_ID}", f"{NEW_BOOK_ID}/", 0, -5, "9" * 30)
    )
    yield from (Request("GET", f"/api/books/{book_id}") for book_id in ("first", "+5", "1.0", "%D9%A1", "%00", "1%202"))
    tags = [f'"v1-{NEW_BOOK_ID}-1"', f'W/"v1-{NEW_BOOK_ID}-1"', "*", '"other"', '"a", "b"', "unquoted"]
    yield from (Request("GET", BOOK_URL, headers={name: tag}) for name in ("If-None-Match", "If-Match") for tag in tags)
    yield Request("GET", f"{BOOK_URL}?format=xml", headers={"Accept": "text/html"})
    yield from (
        Request(method, address) for method in ("GET", "HEAD") for address in ("/", BOOK_URL, "/nowhere", "/api")
    )


LIST_QUERIES = f"""
    limit=2  limit=2&skip=3  skip=399  skip=1000  skip={"9" * 31}  limit=3&limit=1  shelf=1&limit=1
    author=austen  author=AUSTEN&genre=ROMANCE  author=%C3%89mile  genre=%25  author=_  author=%5C
    author=&genre=&limit=1  genre=novel&limit=3&skip=1  author=nobody
    limit=0  limit=501  limit=  limit=ten  limit=1.0  skip=-1  skip=%2B1  limit=0&skip=-1
    author={"a" * 501}  genre=%00  limit=0&skip=x&author={"a" * 501}&genre=%00
""".split()


def generate_lists() -> Iterator[Request]:
    yield from (Request("GET", f"{LIST_URL}?{query}") for query in LIST_QUERIES)


def generate_changes() -> Iterator[Request]:
    yield from (
        Request("PUT", BOOK_URL, json.dumps(change)) for change in ({}, {"year": 1984}, {"year": 1984.0}, {"id": 9})
    )
    yield Request("PUT", BOOK_URL, json.dumps({"title": " ", "genre": ""}))
    yield Request("PUT", BOOK_URL, json.dumps({"isbn": "corpus-2"}))
    yield Request("PUT", BOOK_URL, json.dumps({"isbn": "corpus-1"}))
    yield Request("PUT", BOOK_URL, "{}", {"If-Match": '"other"'})
    yield from (
        Request("PUT", "/api/books/99999", body) for body in ("{}", "{", json.dumps({"isbn": "corpus-2", "year": ""}))
    )
    yield Request("PUT", "/api/books/first", json.dumps({"year": "1984", "title": None}))


def generate_refused_bodies(method: str, address: str) -> Iterator[Request]:
    yield from (Request(method, address, body) for body in ("", " ", "{", "[]", "null", '"text"', "NaN", "[" * 5000))
    yield Request(method, address, "{}", PLAIN_TEXT)
    yield Request(method, address, " " * (1024 * 1024 + 1), PLAIN_TEXT)
    texts: list[Any] = [None, 1, True, [], "\0", "x" * 1001]
    yield from (Request(method, address, json.dumps({**build_book(isbn="no"), "title": text})) for text in texts)
    years: list[Any] = [None, "1984", True, 19.5, 2**31, -(10**30)]
    yield from (Request(method, address, json.dumps({**build_book(isbn="no"), "year": year})) for year in years)
    yield Request(method, address, '{"title": "\\ud800", "author": 1, "year": {}, "isbn": null, "genre": "\\u0000"}')


def collect_responses(service: Service) -> Iterator[dict[str, Any]]:
    """Sends each request to a newly seeded library and yields it with its response.

    Every time of creation is replaced by the same one.
    """
    with service.open_client() as client:
        for request in generate_requests():
            yield {"request": list(request), **send_request(client, request)}


def send_request(client: httpx.Client, request: Request) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"} if request.body is not None else {}
    response = client.request(
        request.method, request.address, content=request.body, headers={**headers, **(request.headers or {})}
    )
    return {
        "status": response.status_code,
        "headers": {name: value for name, value in sorted(response.headers.items()) if name not in VOLATILE_HEADERS},
        "body": TIMESTAMP.sub("2026-01-31T09:30:00.000000", response.text),
    }


def record_corpus() -> None:
    with tempfile.TemporaryDirectory() as folder, serve_library(Path(folder)) as service:
        lines = [json.dumps(drop_request_body(response), ensure_ascii=False) for response in collect_responses(service)]
    CORPUS_FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def drop_request_body(response: dict[str, Any]) -> dict[str, Any]:
    """Removes the body of the request, which is already in this module."""
    method, address, *_ = response["request"]
    return {**response, "request": [method, address]}


if __name__ == "__main__":
    record_corpus()
