"""The body of a bulk is split without building its values, with the same result as if it had been parsed whole."""

import gc
import json
import time
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import APIException, ValidationError

from books.api import bulk
from books.api.bulk_body import MAX_ITEM_BYTES, split_body
from books.api.v2.views import BookViewSetV2
from library_site.api.parsers import parse_json
from tests.support.books import MAX_LENGTHS, build_book
from tests.support.memory import trace_memory
from tests.support.pages import parse_error
from tests.support.request_strategies import (
    bulk_operations,
    choose_evenly,
    choose_rarely,
    comparison_settings,
    encode_bodies,
    odd_literals,
    write_object,
)

BULK = "/api/v2/books/bulk"
MIB = 2**20

Parse = Callable[[bytes], Any]

odd_names = st.sampled_from(["op", "id", "version", "book", "shelf", "operations", "", "\ud800", "📖"])
odd_operations = st.lists(st.tuples(odd_names, odd_literals), max_size=3).map(write_object) | odd_literals
operation_lists = st.lists(choose_rarely(bulk_operations, odd_operations, 4), max_size=4).map(
    lambda operations: f"[{' , '.join(operations)}]"
)
usual_documents = operation_lists.map(lambda operations: write_object([("operations", operations)]))
odd_fields = st.tuples(st.just("operations"), operation_lists | odd_literals) | st.tuples(odd_names, odd_literals)
odd_documents = st.lists(odd_fields, max_size=3, unique_by=itemgetter(0)).map(write_object)
repeating_documents = st.builds(
    lambda first, second: write_object([("operations", first), ("operations", second)]),
    st.sampled_from(["[]", "[{}, 1]", "{}", "1"]),
    operation_lists | odd_literals,
)
documents = choose_evenly(usual_documents, usual_documents, odd_documents, repeating_documents, odd_literals)


def read_operations(parse: Parse, body: bytes) -> Any:
    """Returns the operations and the problems, or the error."""
    try:
        values = bulk.BulkSerializer().run_validation(parse(body))
        operations, problems = bulk.parse_items(values["operations"], BookViewSetV2.operations)
    except APIException as error:
        return type(error), error.get_full_details()
    # As text, because True equals 1.
    return repr(operations), ValidationError(problems).get_full_details() if problems else None


@comparison_settings
@given(body=encode_bodies(documents))
def test_a_body_that_is_split_gives_the_same_operations_and_problems(body: bytes) -> None:
    assert read_operations(split_body, body) == read_operations(parse_json, body)


def fill(start: bytes, unit: bytes, end: bytes, size: int = MIB) -> bytes:
    """Repeats the unit, with commas, until the body has almost this size."""
    return start + b",".join([unit] * ((size - len(start + end)) // (len(unit) + 1))) + end


def write_large_operations(book: bytes) -> bytes:
    """As many operations of the largest size as fit in the body."""
    start, end = b'{"op":"create","book":', b"}"
    return fill(b'{"operations":[', start + book + end, b"]}")


LARGE_VALUE = b'{"operations":[{"op":"create","book":{"title":%s}}]}'
LARGE_BOOK_BYTES = MAX_ITEM_BYTES - 100
EMOJI = "📖".encode()
NAMES = b",".join(b'"%d":0' % number for number in range(80_000))
HOSTILE_BODIES = {
    "objects as operations": fill(b'{"operations":[', b"{}", b"]}"),
    "lists of operations": fill(b"{", b'"operations":[{},{},{}]', b"}"),
    "objects as a title": LARGE_VALUE % fill(b"[", b"{}", b"]"),
    "wide title": LARGE_VALUE % (b'"%s%s"' % ("é".encode() * (MIB // 2), EMOJI)),
    "names beside the operations": b'{"operations":[{}],%s}' % NAMES,
    "no object": fill(b"[", b"{}", b"]"),
    "invalid UTF-8 at the end": fill(b'{"operations":[', b"{}", b',"\xff"]}'),
    "brackets": b"[" * MIB,
    "large operations of objects": write_large_operations(fill(b'{"title":[', b"{}", b"]}", LARGE_BOOK_BYTES)),
}


@pytest.mark.parametrize("name", HOSTILE_BODIES)
def test_a_large_body_takes_little_more_memory_than_its_bytes(api: httpx.Client, name: str) -> None:
    api.post(BULK, content=b"{}")
    body = HOSTILE_BODIES[name]
    with trace_memory() as memory, memory.measure():
        response = api.post(BULK, content=body)
    assert response.status_code in (400, 413, 422)
    assert memory.peak < 5 * MIB


def test_a_large_body_is_gone_with_its_answer(api: httpx.Client) -> None:
    body = json.dumps({"operations": [{"op": "create", "book": build_book()}]}).encode().ljust(2 * MIB)
    api.post(BULK, content=b"{}")
    with trace_memory() as memory, memory.measure():
        response = api.post(BULK, content=body)
    assert response.status_code == 200
    assert memory.rest < MIB


def test_failures_leave_no_operations_in_memory(api: httpx.Client) -> None:
    book = build_book(title="📖" * MAX_LENGTHS["title"])
    operations = [{"op": "create", "book": book}] * 60
    body = json.dumps({"operations": operations}).encode()
    api.post(BULK, content=body)
    gc.collect()
    with trace_memory() as memory, memory.measure():
        response = api.post(BULK, content=body)
        gc.collect()
    assert parse_error(response)[:2] == (409, "CONFLICT")
    assert memory.rest < MIB // 5


def test_repeated_operations_take_little_time(api: httpx.Client) -> None:
    body = fill(b"{", b'"operations":[{}]', b"}", 8 * MIB)
    start_time = time.thread_time()
    response = api.post(BULK, content=body)
    assert time.thread_time() - start_time < 0.5
    assert parse_error(response) == (422, "VALIDATION_ERROR", ["0.op"])


@pytest.mark.parametrize(("size", "fields"), [(MAX_ITEM_BYTES, ["1.title"]), (MAX_ITEM_BYTES + 1, ["1.op"])])
def test_an_operation_may_have_64_kibibytes(api: httpx.Client, size: int, fields: list[str]) -> None:
    operation = json.dumps({"op": "create", "book": build_book(title="")}).encode()
    large = operation.replace(b"{", b"{" + b" " * (size - len(operation)), 1)
    response = api.post(BULK, content=b'{"operations":[%s,%s,%s]}' % (operation, large, operation))
    assert parse_error(response) == (422, "VALIDATION_ERROR", ["0.title", *fields, "2.title"])


def test_the_longest_book_fits_in_an_operation(api: httpx.Client) -> None:
    book = build_book(**{name: "📖" * length for name, length in MAX_LENGTHS.items()})
    stored_book = api.post("/api/v2/books", json=book).json()
    operations = [{"op": "update", "id": stored_book["id"], "book": stored_book}]
    assert api.post(BULK, content=json.dumps({"operations": operations}, indent=8)).status_code == 200


@pytest.mark.parametrize("beside", [b'"shelf":"%s"' % (b"a" * MAX_ITEM_BYTES), NAMES])
def test_a_body_with_much_beside_its_operations_is_refused(api: httpx.Client, beside: bytes) -> None:
    response = api.post(BULK, content=b'{"operations":[{}],%s}' % beside)
    assert parse_error(response) == (422, "VALIDATION_ERROR", ["body"])


def test_a_lone_surrogate_in_a_body_over_one_mebibyte_is_malformed(api: httpx.Client) -> None:
    body = json.dumps({"operations": [{"op": "create", "book": build_book(title="\ud800")}]}).encode()
    responses = [api.post(BULK, content=body.ljust(size)) for size in (MIB, MIB + 1)]
    assert [parse_error(response) for response in responses] == [
        (422, "VALIDATION_ERROR", ["0.title"]),
        (400, "MALFORMED_REQUEST", ["body"]),
    ]
