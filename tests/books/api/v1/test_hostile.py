"""Whatever is sent, the answer is one that is documented."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.serving import Service
from tests.support.strategies import bodies, thorough

TEXT = {"type": "string", "minLength": 1}
PROBLEM = {
    "type": "object",
    "properties": {"loc": {"type": "array", "items": TEXT, "minItems": 1}, "msg": TEXT, "type": TEXT},
    "required": ["loc", "msg", "type"],
    "additionalProperties": False,
}
BOOK = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "title": {"type": "string"},
        "author": {"type": "string"},
        "year": {"type": "integer"},
        "isbn": {"type": "string"},
        "genre": {"type": "string"},
        "available": {"type": "boolean"},
        "created_at": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$"},
    },
    "required": ["id", "title", "author", "year", "isbn", "genre", "available", "created_at"],
    "additionalProperties": False,
}


def detail(schema: dict[str, Any]) -> Draft202012Validator:
    shape = {"type": "object", "properties": {"detail": schema}, "required": ["detail"], "additionalProperties": False}
    return Draft202012Validator(shape)


PROBLEMS = detail({"type": "array", "items": PROBLEM, "minItems": 1})
WORDS = detail(TEXT)
ONE = Draft202012Validator(BOOK)
MANY = Draft202012Validator({"type": "array", "items": BOOK, "maxItems": 500})

words = st.text(max_size=30)
numbers = st.integers().map(str) | st.sampled_from(["0", "1", "499", "500", "501", "-1", "1e3"])
queries = st.lists(
    st.tuples(st.sampled_from(["skip", "limit", "author", "genre"]) | words, numbers | words), max_size=5
)


@thorough
@given(body=bodies)
def test_any_json_may_be_sent(api: httpx.Client, book: dict[str, Any], body: object) -> None:
    content = json.dumps(body)
    created = api.post("/api/books", content=content)
    changed = api.put(f"/api/books/{book['id']}", content=content)
    {201: ONE, 409: WORDS, 422: PROBLEMS}[created.status_code].validate(created.json())
    {200: ONE, 409: WORDS, 422: PROBLEMS}[changed.status_code].validate(changed.json())


@thorough
@given(body=st.binary(max_size=200))
def test_any_bytes_may_be_sent(api: httpx.Client, book: dict[str, Any], body: bytes) -> None:
    created = api.post("/api/books", content=body)
    changed = api.put(f"/api/books/{book['id']}", content=body)
    {422: PROBLEMS}[created.status_code].validate(created.json())
    {200: ONE, 422: PROBLEMS}[changed.status_code].validate(changed.json())


@pytest.fixture
def served(service: Service) -> Iterator[httpx.Client]:
    """A client over the network: the one in this process knows no path beyond Latin-1."""
    with service.client() as client:
        yield client


@thorough
@given(query=queries)
def test_any_query_may_be_asked(served: httpx.Client, query: list[tuple[str, str]]) -> None:
    answer = served.get(f"/api/books?{urlencode(query)}")
    {200: MANY, 422: PROBLEMS}[answer.status_code].validate(answer.json())


@thorough
@given(book_id=(st.integers().map(str) | st.text(min_size=1, max_size=30)).filter(lambda text: "/" not in text))
def test_any_book_may_be_asked_for(served: httpx.Client, book_id: str) -> None:
    answer = served.get(f"/api/books/{quote(book_id, safe='')}")
    {200: ONE, 404: WORDS, 422: PROBLEMS}[answer.status_code].validate(answer.json())


@thorough
@given(value=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40))
def test_any_precondition_may_be_set(api: httpx.Client, book: dict[str, Any], value: str) -> None:
    address = f"/api/books/{book['id']}"
    read = api.get(address, headers={"If-Match": value})
    changed = api.put(address, content=b"{}", headers={"If-Match": value})
    {200: ONE, 412: WORDS}[read.status_code].validate(read.json())
    {200: ONE, 412: WORDS}[changed.status_code].validate(changed.json())
