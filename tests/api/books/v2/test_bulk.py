"""POST /api/v2/books/bulk: many changes in one transaction."""

import json
from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.pages import parse_error

BOOKS = "/api/v2/books"
BULK = "/api/v2/books/bulk"


@pytest.fixture
def books(api: httpx.Client) -> list[dict[str, Any]]:
    """Three stored books."""
    return [api.post(BOOKS, json=build_book()).json() for _ in range(3)]


def build_create(**values: Any) -> dict[str, Any]:
    return {"op": "create", "book": build_book(**values)}


def build_update(book: dict[str, Any], /, **values: Any) -> dict[str, Any]:
    """With `version`, the update is for that version of the book only."""
    condition = {"version": values.pop("version")} if "version" in values else {}
    return {"op": "update", "id": book["id"], "book": values, **condition}


def build_delete(book: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {"op": "delete", "id": book["id"], **values}


def send_bulk(api: httpx.Client, *operations: object, dry_run: bool = False) -> httpx.Response:
    return api.post(f"{BULK}?dry_run=true" if dry_run else BULK, content=json.dumps({"operations": operations}))


def list_books(api: httpx.Client) -> list[dict[str, Any]]:
    """The first 500 books of the library."""
    stored: list[dict[str, Any]] = api.get(f"{BOOKS}?limit=500").json()["results"]
    return stored


def test_the_result_of_each_operation_is_answered_and_a_dry_run_changes_nothing(
    api: httpx.Client, books: list[dict[str, Any]]
) -> None:
    first, second, third = books
    operations = [
        build_create(title="Emma"),
        build_update(first, year=2000, available=False),
        build_delete(second),
        build_create(isbn=second["isbn"]),
        build_update(third, version=1),
    ]
    results = [
        {"op": "create", "id": None, "version": 1},
        {"op": "update", "id": first["id"], "version": 2},
        {"op": "delete", "id": second["id"]},
        {"op": "create", "id": None, "version": 1},
        {"op": "update", "id": third["id"], "version": 1},
    ]
    rehearsal = send_bulk(api, *operations, dry_run=True)
    assert (rehearsal.status_code, rehearsal.json()) == (200, {"dry_run": True, "results": results})
    assert list_books(api) == books
    response = send_bulk(api, *operations)
    changed_book, unchanged_book, emma, other = list_books(api)
    results[0]["id"], results[3]["id"] = emma["id"], other["id"]
    assert (response.status_code, response.json()) == (200, {"dry_run": False, "results": results})
    changes = {"year": 2000, "available": False, "version": 2, "updated_at": changed_book["updated_at"]}
    assert changed_book == {**first, **changes} == api.get(f"{BOOKS}/{first['id']}").json()
    assert changed_book["updated_at"] > first["updated_at"]
    assert (unchanged_book, emma["title"], other["isbn"]) == (third, "Emma", second["isbn"])


def test_operations_run_in_their_order(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    first, second, third = books
    response = send_bulk(
        api,
        build_delete(first),
        build_create(isbn=first["isbn"], title="After"),
        build_update(second, year=1),
        build_update(second, year=2, version=2),
        build_delete(second, version=3),
        build_update(third, isbn=second["isbn"]),
    )
    assert [result.get("version") for result in response.json()["results"]] == [None, 1, 2, 3, None, 2]
    assert [(book["title"], book["isbn"]) for book in list_books(api)] == [
        (third["title"], second["isbn"]),
        ("After", first["isbn"]),
    ]


def test_every_failure_is_named_and_nothing_is_changed(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    first, second, third = books
    response = send_bulk(
        api,
        build_create(),
        build_create(isbn=first["isbn"]),
        build_update(second, version=7, year=2000),
        build_update({"id": 987654321}, year=2000),
        build_create(title=" ", year="1984"),
        build_delete(third),
        build_update(third, year=2000),
        {"op": "destroy", "id": 1},
    )
    assert response.status_code == 422
    error = response.json()["error"]
    assert [(problem["field"], problem["message"]) for problem in error.pop("details")] == [
        ("1.isbn", f"The book at http://127.0.0.1:8000/api/v2/books/{first['id']} has it"),
        ("2.version", "The book is at another version"),
        ("3.id", "Book not found"),
        ("4.title", "This field may not be blank."),
        ("4.year", "Input should be a valid integer."),
        ("6.id", "Book not found"),
        ("7.op", "It is one of create, update, delete."),
    ]
    assert error == {
        "code": "VALIDATION_ERROR",
        "message": "Nothing was changed: not every operation can be carried out",
        "requestId": response.headers["X-Request-ID"],
    }
    assert send_bulk(api, build_create(), build_create(title=" ")).status_code == 422
    assert list_books(api) == books


def test_a_bulk_that_fails_by_conflicts_only_is_a_conflict(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    first, second, third = books
    operations = [
        build_create(isbn="twice"),
        build_create(isbn="twice"),
        build_update(first, isbn=second["isbn"]),
        build_delete(third, version=2),
    ]
    for dry_run in (True, False):
        response = send_bulk(api, *operations, dry_run=dry_run)
        assert parse_error(response) == (409, "CONFLICT", ["1.isbn", "2.isbn", "3.version"])
    assert list_books(api) == books


@pytest.mark.parametrize(("value", "status"), [("false", 200), ("", 422), ("True", 422)])
def test_a_dry_run_is_true_or_false(api: httpx.Client, value: str, status: int) -> None:
    response = api.post(f"{BULK}?dry_run={value}", json={"operations": [build_create()]})
    assert (response.status_code, '"field":"dry_run"' in response.text) == (status, status == 422)
    assert len(list_books(api)) == (value == "false")


def test_one_to_a_thousand_operations_may_be_sent(api: httpx.Client) -> None:
    refused = {number: parse_error(send_bulk(api, *[{}] * number)) for number in (0, 1000, 1001)}
    each_operation = [f"{index}.op" for index in range(1000)]
    assert refused == {
        0: (422, "VALIDATION_ERROR", ["operations"]),
        1000: (422, "VALIDATION_ERROR", each_operation),
        1001: (422, "VALIDATION_ERROR", ["operations"]),
    }


def test_a_body_is_an_object_with_operations(api: httpx.Client) -> None:
    bodies = {
        "[]": "body",
        "{}": "operations",
        '{"operations": {}}': "operations",
        '{"operations": [{}], "dry_run": 1}': "dry_run",
        '{"operations": [{}], "\\ud800": 1}': "\\ud800",
    }
    errors = {body: parse_error(api.post(BULK, content=body)) for body in bodies}
    assert errors == {body: (422, "VALIDATION_ERROR", [field]) for body, field in bodies.items()}


def test_each_wrong_operation_is_named(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    operations: list[tuple[object, list[str]]] = [
        ("create", ["op"]),
        ({}, ["op"]),
        ({"op": "\ud800"}, ["op"]),
        ({"op": "create"}, ["book"]),
        ({"op": "create", "book": {}}, [*build_book()]),
        ({"op": "update", "book": {}}, ["id"]),
        ({"op": "update", "id": 1, "book": {"shelf": 1}}, ["shelf"]),
        ({"op": "update", "id": 1, "book": {"available": 1}}, ["available"]),
        ({"op": "delete"}, ["id"]),
        ({"op": "delete", "id": "1"}, ["id"]),
        ({"op": "delete", "id": True}, ["id"]),
        ({"op": "delete", "id": 0}, ["id"]),
        ({"op": "delete", "id": 2**63}, ["id"]),
        ({"op": "delete", "id": 1, "version": None}, ["version"]),
        ({"op": "delete", "id": 1, "book": {}}, ["book"]),
        ({"op": "delete", "id": 1, "shelf": 1}, ["shelf"]),
    ]
    response = send_bulk(api, *(operation for operation, _ in operations), build_delete(books[0]))
    fields = [f"{index}.{name}" for index, (_, names) in enumerate(operations) for name in names]
    assert parse_error(response) == (422, "VALIDATION_ERROR", fields)
    assert list_books(api) == books
