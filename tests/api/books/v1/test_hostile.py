"""Every request has a documented answer, also one of random values."""

import json
from typing import Any
from urllib.parse import urlencode

import httpx
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.strategies import bodies, hypothesis_settings

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


def build_detail_validator(schema: dict[str, Any]) -> Draft202012Validator:
    body = {"type": "object", "properties": {"detail": schema}, "required": ["detail"], "additionalProperties": False}
    return Draft202012Validator(body)


PROBLEMS_VALIDATOR = build_detail_validator({"type": "array", "items": PROBLEM, "minItems": 1})
MESSAGE_VALIDATOR = build_detail_validator(TEXT)
BOOK_VALIDATOR = Draft202012Validator(BOOK)
LIST_VALIDATOR = Draft202012Validator({"type": "array", "items": BOOK, "maxItems": 500})

names = st.text(max_size=30)
numbers = st.integers().map(str) | st.sampled_from(["0", "1", "499", "500", "501", "-1", "1e3"])
queries = st.lists(
    st.tuples(st.sampled_from(["skip", "limit", "author", "genre"]) | names, numbers | names), max_size=5
)


@hypothesis_settings
@given(body=bodies)
def test_any_json_may_be_sent(api: httpx.Client, book: dict[str, Any], body: object) -> None:
    content = json.dumps(body)
    creation = api.post("/api/books", content=content)
    change = api.put(f"/api/books/{book['id']}", content=content)
    {201: BOOK_VALIDATOR, 409: MESSAGE_VALIDATOR, 422: PROBLEMS_VALIDATOR}[creation.status_code].validate(
        creation.json()
    )
    {200: BOOK_VALIDATOR, 409: MESSAGE_VALIDATOR, 422: PROBLEMS_VALIDATOR}[change.status_code].validate(change.json())


@hypothesis_settings
@given(body=st.binary(max_size=200))
def test_any_bytes_may_be_sent(api: httpx.Client, book: dict[str, Any], body: bytes) -> None:
    creation = api.post("/api/books", content=body)
    change = api.put(f"/api/books/{book['id']}", content=body)
    {422: PROBLEMS_VALIDATOR}[creation.status_code].validate(creation.json())
    {200: BOOK_VALIDATOR, 422: PROBLEMS_VALIDATOR}[change.status_code].validate(change.json())


@hypothesis_settings
@given(query=queries)
def test_any_query_may_be_asked(api: httpx.Client, query: list[tuple[str, str]]) -> None:
    response = api.get(f"/api/books?{urlencode(query)}")
    {200: LIST_VALIDATOR, 422: PROBLEMS_VALIDATOR}[response.status_code].validate(response.json())


@hypothesis_settings
@given(value=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40))
def test_any_precondition_may_be_set(api: httpx.Client, book: dict[str, Any], value: str) -> None:
    address = f"/api/books/{book['id']}"
    read = api.get(address, headers={"If-Match": value})
    change = api.put(address, content=b"{}", headers={"If-Match": value})
    {200: BOOK_VALIDATOR, 412: MESSAGE_VALIDATOR}[read.status_code].validate(read.json())
    {200: BOOK_VALIDATOR, 412: MESSAGE_VALIDATOR}[change.status_code].validate(change.json())
