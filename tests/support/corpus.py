"""Requests of version 1 and their answers, kept to the byte: what clients were answered, they are answered still.

`python -m tests.support.corpus` records them anew, for the day the contract itself changes.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.support.books import new_book
from tests.support.serving import SEEDED, Service, serving

RECORDED = Path(__file__).parent / "corpus.json"
TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}")
# Of the moment, the server and the pages, not of the contract.
PASSING = {"date", "server", "connection", "content-security-policy"}
NEW = SEEDED + 1
BOOK, LIST, TEXT = f"/api/books/{NEW}", "/api/books", {"Content-Type": "text/plain"}


class Request(NamedTuple):
    method: str
    address: str
    body: str | None = None
    headers: dict[str, str] | None = None


def requests() -> Iterator[Request]:
    """In this order; ids of new books are foretold, so what fails to add one comes after all that succeed."""
    yield Request("POST", LIST, json.dumps(new_book(isbn="corpus-1", title="Żółw", year=-44)))
    ignored = {"id": 7, "available": False, "shelf": [1]}
    yield Request("POST", f"{LIST}/", json.dumps({**new_book(isbn="corpus-2"), **ignored}))
    yield from reading()
    yield from listing()
    yield from changing()
    yield from refused_bodies("PUT", BOOK)
    yield Request("DELETE", BOOK, headers={"If-Match": '"other"'})
    for _ in range(2):
        yield Request("DELETE", BOOK)
    yield Request("GET", BOOK)
    yield Request("POST", LIST, json.dumps(new_book(isbn="corpus-2")))
    yield from refused_bodies("POST", LIST)
    yield from (Request(method, address) for method in ("PATCH", "OPTIONS") for address in ("/", LIST, BOOK))
    yield from (Request("DELETE", address) for address in ("/", LIST, "/api/shelves"))


def reading() -> Iterator[Request]:
    yield from (Request("GET", f"/api/books/{book_id}") for book_id in (NEW, f"0{NEW}", f"{NEW}/", 0, -5, "9" * 30))
    yield from (Request("GET", f"/api/books/{book_id}") for book_id in ("first", "+5", "1.0", "%D9%A1", "%00", "1%202"))
    tags = [f'"v1-{NEW}-1"', f'W/"v1-{NEW}-1"', "*", '"other"', '"a", "b"', "unquoted"]
    yield from (Request("GET", BOOK, headers={name: tag}) for name in ("If-None-Match", "If-Match") for tag in tags)
    yield Request("GET", f"{BOOK}?format=xml", headers={"Accept": "text/html"})
    yield from (Request(method, address) for method in ("GET", "HEAD") for address in ("/", BOOK, "/nowhere", "/api"))


QUERIES = f"""
    limit=2  limit=2&skip=3  skip=399  skip=1000  skip={"9" * 31}  limit=3&limit=1  shelf=1&limit=1
    author=austen  author=AUSTEN&genre=ROMANCE  author=%C3%89mile  genre=%25  author=_  author=%5C
    author=&genre=&limit=1  genre=novel&limit=3&skip=1  author=nobody
    limit=0  limit=501  limit=  limit=ten  limit=1.0  skip=-1  skip=%2B1  limit=0&skip=-1
    author={"a" * 501}  genre=%00  limit=0&skip=x&author={"a" * 501}&genre=%00
""".split()


def listing() -> Iterator[Request]:
    yield from (Request("GET", f"{LIST}?{query}") for query in QUERIES)


def changing() -> Iterator[Request]:
    yield from (
        Request("PUT", BOOK, json.dumps(change)) for change in ({}, {"year": 1984}, {"year": 1984.0}, {"id": 9})
    )
    yield Request("PUT", BOOK, json.dumps({"title": " ", "genre": ""}))
    yield Request("PUT", BOOK, json.dumps({"isbn": "corpus-2"}))
    yield Request("PUT", BOOK, json.dumps({"isbn": "corpus-1"}))
    yield Request("PUT", BOOK, "{}", {"If-Match": '"other"'})
    yield from (
        Request("PUT", "/api/books/99999", body) for body in ("{}", "{", json.dumps({"isbn": "corpus-2", "year": ""}))
    )
    yield Request("PUT", "/api/books/first", json.dumps({"year": "1984", "title": None}))


def refused_bodies(method: str, address: str) -> Iterator[Request]:
    yield from (Request(method, address, body) for body in ("", " ", "{", "[]", "null", '"text"', "NaN", "[" * 5000))
    yield Request(method, address, "{}", TEXT)
    yield Request(method, address, " " * (1024 * 1024 + 1), TEXT)
    texts: list[Any] = [None, 1, True, [], "\0", "x" * 1001]
    yield from (Request(method, address, json.dumps({**new_book(isbn="no"), "title": text})) for text in texts)
    years: list[Any] = [None, "1984", True, 19.5, 2**31, -(10**30)]
    yield from (Request(method, address, json.dumps({**new_book(isbn="no"), "year": year})) for year in years)
    yield Request(method, address, '{"title": "\\ud800", "author": 1, "year": {}, "isbn": null, "genre": "\\u0000"}')


def answers(service: Service) -> Iterator[dict[str, Any]]:
    """Each request with what a fresh library answered, every time of creation the same."""
    with service.client() as client:
        for request in requests():
            yield {"request": list(request), **answered(client, request)}


def answered(client: httpx.Client, request: Request) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"} if request.body is not None else {}
    answer = client.request(
        request.method, request.address, content=request.body, headers={**headers, **(request.headers or {})}
    )
    return {
        "status": answer.status_code,
        "headers": {name: value for name, value in sorted(answer.headers.items()) if name not in PASSING},
        "body": TIME.sub("2026-01-31T09:30:00.000000", answer.text),
    }


def record() -> None:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as service:
        lines = [json.dumps(shortened(one), ensure_ascii=False) for one in answers(service)]
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def shortened(answer: dict[str, Any]) -> dict[str, Any]:
    """Without the body of the request, which stands above."""
    method, address, *_ = answer["request"]
    return {**answer, "request": [method, address]}


if __name__ == "__main__":
    record()
