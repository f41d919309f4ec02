"""POST /api/v2/books/bulk: many changes in one transaction."""

import json
import time
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.books import LENGTHS, new_book
from tests.support.pages import refused
from tests.support.responses import allowed
from tests.support.serving import Service
from tests.support.strategies import thorough

BOOKS = "/api/v2/books"
BULK = "/api/v2/books/bulk"
MIB = 2**20


@pytest.fixture
def books(api: httpx.Client) -> list[dict[str, Any]]:
    """Three stored books."""
    return [api.post(BOOKS, json=new_book()).json() for _ in range(3)]


def create(**members: Any) -> dict[str, Any]:
    return {"op": "create", "book": new_book(**members)}


def update(book: dict[str, Any], /, **members: Any) -> dict[str, Any]:
    """`version` is the one that the book should be at."""
    wanted = {"version": members.pop("version")} if "version" in members else {}
    return {"op": "update", "id": book["id"], "book": members, **wanted}


def delete(book: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"op": "delete", "id": book["id"], **members}


def sent(api: httpx.Client, *operations: object, dry_run: bool = False) -> httpx.Response:
    return api.post(f"{BULK}?dry_run=true" if dry_run else BULK, content=json.dumps({"operations": operations}))


def listed(api: httpx.Client) -> list[dict[str, Any]]:
    """All books there are, to 500."""
    stored: list[dict[str, Any]] = api.get(f"{BOOKS}?limit=500").json()["results"]
    return stored


def test_what_was_done_is_answered_whole(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    first, second, third = books
    answer = sent(
        api, create(title="Emma"), update(first, year=2000, available=False), delete(second), update(third, version=1)
    )
    *_, kept, created = listed(api)
    assert answer.status_code == 200
    assert answer.json() == {
        "dry_run": False,
        "results": [
            {"op": "create", "id": created["id"], "version": 1},
            {"op": "update", "id": first["id"], "version": 2},
            {"op": "delete", "id": second["id"]},
            {"op": "update", "id": third["id"], "version": 1},
        ],
    }
    changed = api.get(f"{BOOKS}/{first['id']}").json()
    assert changed == {**first, "year": 2000, "available": False, "version": 2, "updated_at": changed["updated_at"]}
    assert changed["updated_at"] > first["updated_at"]
    assert listed(api) == [changed, kept, created]
    assert (kept, created["title"], created["version"]) == (third, "Emma", 1)


@pytest.mark.parametrize("address", [BULK, f"{BULK}/", "/api/books/bulk?version=2"])
def test_every_address_of_it_is_answered(api: httpx.Client, address: str) -> None:
    assert api.post(address, json={"operations": [create()]}).status_code == 200


def test_operations_are_carried_out_in_their_order(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    first, second, third = books
    answer = sent(
        api,
        delete(first),
        create(isbn=first["isbn"], title="After"),
        update(second, year=1),
        update(second, year=2, version=2),
        delete(second, version=3),
        update(third, isbn=second["isbn"]),
    )
    assert [result.get("version") for result in answer.json()["results"]] == [None, 1, 2, 3, None, 2]
    assert [(book["title"], book["isbn"]) for book in listed(api)] == [
        (third["title"], second["isbn"]),
        ("After", first["isbn"]),
    ]


def test_books_swap_their_isbns_by_way_of_a_third(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    first, second, _ = books
    answer = sent(
        api,
        update(first, isbn="on its way"),
        update(second, isbn=first["isbn"]),
        update(first, isbn=second["isbn"]),
    )
    assert answer.status_code == 200
    assert [book["isbn"] for book in listed(api)[:2]] == [second["isbn"], first["isbn"]]


def test_equal_values_are_no_change(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    answer = sent(api, *(update(book, title=book["title"]) for book in books), update(books[0]))
    assert [result["version"] for result in answer.json()["results"]] == [1] * 4
    assert listed(api) == books


def test_what_only_the_library_sets_is_ignored(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    answer = sent(
        api, {"op": "create", "book": {**books[0], "isbn": "new", "available": False}}, update(books[0], **books[0])
    )
    assert answer.status_code == 200
    *before, created = listed(api)
    assert before == books
    assert (created["available"], created["isbn"]) == (True, "new")


@pytest.mark.parametrize("dry_run", [False, True])
def test_every_failure_is_named_and_nothing_is_changed(
    api: httpx.Client, books: list[dict[str, Any]], dry_run: bool
) -> None:
    first, second, third = books
    answer = sent(
        api,
        create(),
        create(isbn=first["isbn"]),
        update(second, version=7, year=2000),
        update({"id": 987654321}, year=2000),
        create(title=" ", year="1984"),
        delete(third),
        update(third, year=2000),
        {"op": "destroy", "id": 1},
        dry_run=dry_run,
    )
    assert answer.status_code == 422
    error = answer.json()["error"]
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
        "requestId": answer.headers["X-Request-ID"],
    }
    assert listed(api) == books


@pytest.mark.parametrize("dry_run", [False, True])
def test_nothing_but_conflicts_is_a_conflict(api: httpx.Client, books: list[dict[str, Any]], dry_run: bool) -> None:
    first, second, third = books
    answer = sent(
        api,
        create(isbn="twice"),
        create(isbn="twice"),
        update(first, isbn=second["isbn"]),
        delete(third, version=2),
        dry_run=dry_run,
    )
    assert refused(answer) == (409, "CONFLICT", ["1.isbn", "2.isbn", "3.version"])
    assert listed(api) == books


def test_the_last_of_a_thousand_may_fail_alone(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    answer = sent(api, *(create() for _ in range(999)), create(isbn=books[0]["isbn"]))
    assert refused(answer) == (409, "CONFLICT", ["999.isbn"])
    assert listed(api) == books


def test_what_one_operation_was_refused_the_next_is_refused_too(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    first, second, _ = books
    answer = sent(api, update(first, isbn=second["isbn"]), update(first, isbn=second["isbn"]))
    assert refused(answer) == (409, "CONFLICT", ["0.isbn", "1.isbn"])
    assert listed(api) == books


def test_a_dry_run_answers_alike_and_changes_nothing(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    first, second, third = books
    operations = [
        create(isbn="9780141439518"),
        update(first, year=2000, version=1),
        update(second, title=second["title"]),
        delete(third),
        create(isbn=third["isbn"]),
    ]
    rehearsed = sent(api, *operations, dry_run=True)
    assert rehearsed.status_code == 200
    assert rehearsed.json() == {
        "dry_run": True,
        "results": [
            {"op": "create", "id": None, "version": 1},
            {"op": "update", "id": first["id"], "version": 2},
            {"op": "update", "id": second["id"], "version": 1},
            {"op": "delete", "id": third["id"]},
            {"op": "create", "id": None, "version": 1},
        ],
    }
    assert listed(api) == books
    done = sent(api, *operations)
    assert (done.status_code, done.json()["dry_run"]) == (200, False)
    assert [{**one, "id": None} for one in done.json()["results"]] == [
        {**one, "id": None} for one in rehearsed.json()["results"]
    ]


@pytest.mark.parametrize(("value", "status"), [("false", 200), ("true", 200), ("", 422), ("1", 422), ("True", 422)])
def test_a_dry_run_is_true_or_false(api: httpx.Client, value: str, status: int) -> None:
    answer = api.post(f"{BULK}?dry_run={value}", json={"operations": [create()]})
    assert answer.status_code == status
    assert len(listed(api)) == (value == "false")


def test_a_wrong_dry_run_is_named(api: httpx.Client) -> None:
    answer = api.post(f"{BULK}?dry_run=yes", json={"operations": [create()]})
    assert refused(answer) == (422, "VALIDATION_ERROR", ["dry_run"])
    assert listed(api) == []


def test_a_parameter_that_is_not_known_is_named(api: httpx.Client) -> None:
    answer = api.post(f"{BULK}?dryrun=true", json={"operations": [create()]})
    assert refused(answer) == (400, "UNKNOWN_PARAMETER", ["dryrun"])
    assert answer.json()["error"]["details"][0]["message"].endswith("the nearest name is dry_run.")
    assert listed(api) == []


def test_a_thousand_operations_may_be_sent(api: httpx.Client) -> None:
    answer = sent(api, *(create() for _ in range(1000)))
    assert answer.status_code == 200
    assert len({result["id"] for result in answer.json()["results"]}) == 1000
    assert api.get(f"{BOOKS}?count=true").json()["count"] == 1000


@pytest.mark.parametrize("amount", [0, 1001])
def test_no_operations_and_too_many_are_refused(api: httpx.Client, amount: int) -> None:
    answer = sent(api, *(create() for _ in range(amount)))
    assert refused(answer) == (422, "VALIDATION_ERROR", ["operations"])
    assert listed(api) == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("null", "body"),
        ("[]", "body"),
        ("1", "body"),
        ('[{"op": "delete", "id": 1}]', "body"),
        ("{}", "operations"),
        ('{"operations": null}', "operations"),
        ('{"operations": {}}', "operations"),
        ('{"operations": "create"}', "operations"),
        ('{"operations": 1}', "operations"),
    ],
)
def test_a_body_is_an_object_with_operations(api: httpx.Client, body: str, field: str) -> None:
    assert refused(api.post(BULK, content=body)) == (422, "VALIDATION_ERROR", [field])


@pytest.mark.parametrize("name", ["operation", "dry_run", "\ud800"])
def test_a_member_of_the_body_that_is_not_known_is_refused(
    api: httpx.Client, books: list[dict[str, Any]], name: str
) -> None:
    answer = api.post(BULK, content=json.dumps({"operations": [delete(books[0])], name: 1}))
    assert refused(answer)[:2] == (422, "VALIDATION_ERROR")
    assert listed(api) == books


@pytest.mark.parametrize("body", [b"", b"{", b'{"operations": [NaN]}', b"[" * 100_000])
def test_what_is_no_json_is_malformed(api: httpx.Client, body: bytes) -> None:
    assert refused(api.post(BULK, content=body)) == (400, "MALFORMED_REQUEST", ["body"])


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        pytest.param(None, ["1.op"], id="null"),
        pytest.param("create", ["1.op"], id="text"),
        pytest.param([], ["1.op"], id="list"),
        pytest.param({}, ["1.op"], id="nothing"),
        pytest.param({"op": None}, ["1.op"], id="op null"),
        pytest.param({"op": ["create"]}, ["1.op"], id="op list"),
        pytest.param({"op": {}}, ["1.op"], id="op object"),
        pytest.param({"op": "Create", "book": {}}, ["1.op"], id="op in capitals"),
        pytest.param({"op": "\ud800"}, ["1.op"], id="op of a surrogate"),
        pytest.param({"op": "create"}, ["1.book"], id="no book to create"),
        pytest.param({"op": "create", "book": None}, ["1.book"], id="book null"),
        pytest.param({"op": "create", "book": []}, ["1.book"], id="book list"),
        pytest.param({"op": "create", "book": "Emma"}, ["1.book"], id="book text"),
        pytest.param({"op": "update", "id": 1}, ["1.book"], id="no book to update by"),
        pytest.param({"op": "update", "book": {}}, ["1.id"], id="no id to update"),
        pytest.param({"op": "delete"}, ["1.id"], id="no id to delete"),
        pytest.param({"op": "delete", "id": None}, ["1.id"], id="id null"),
        pytest.param({"op": "delete", "id": "1"}, ["1.id"], id="id text"),
        pytest.param({"op": "delete", "id": True}, ["1.id"], id="id true"),
        pytest.param({"op": "delete", "id": 1.5}, ["1.id"], id="id with a fraction"),
        pytest.param({"op": "delete", "id": [1]}, ["1.id"], id="id list"),
        pytest.param({"op": "delete", "id": 0}, ["1.id"], id="id zero"),
        pytest.param({"op": "delete", "id": -1}, ["1.id"], id="id below zero"),
        pytest.param({"op": "delete", "id": 2**63}, ["1.id"], id="id over 64 bits"),
        pytest.param({"op": "delete", "id": 10**30}, ["1.id"], id="id of 10**30"),
        pytest.param({"op": "delete", "id": 1e300}, ["1.id"], id="id of 1e300"),
        pytest.param({"op": "delete", "id": 1, "version": None}, ["1.version"], id="version null"),
        pytest.param({"op": "delete", "id": 1, "version": "1"}, ["1.version"], id="version text"),
        pytest.param({"op": "delete", "id": 1, "version": True}, ["1.version"], id="version true"),
        pytest.param({"op": "delete", "id": 1, "book": {}}, ["1.book"], id="book to delete"),
        pytest.param({"op": "delete", "id": 1, "shelf": 1}, ["1.shelf"], id="unknown member"),
        pytest.param({"op": "update", "id": 1, "book": {"shelf": 1}}, ["1.shelf"], id="unknown member of the book"),
        pytest.param({"op": "update", "id": 1, "book": {"book": 1}}, ["1.book"], id="book in the book"),
        pytest.param({"op": "update", "id": 1, "book": {"op": 1}}, ["1.op"], id="op in the book"),
        pytest.param({"op": "update", "id": 1, "book": {"title": None}}, ["1.title"], id="null in the book"),
        pytest.param({"op": "update", "id": 1, "book": {"available": 1}}, ["1.available"], id="available 1"),
        pytest.param({"op": "create", "book": {}}, [f"1.{name}" for name in new_book()], id="empty book"),
    ],
)
def test_a_wrong_operation_is_named(
    api: httpx.Client, books: list[dict[str, Any]], operation: object, fields: list[str]
) -> None:
    answer = sent(api, delete(books[0]), operation)
    assert refused(answer) == (422, "VALIDATION_ERROR", fields)
    assert listed(api) == books


def test_a_member_with_a_strange_name_is_refused(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    strange = [{**create(), "\ud800": 1}, create(**{"\ud800": 1}), create(**{"": 1}), create(book=new_book())]
    answers = [sent(api, delete(books[0]), operation) for operation in strange]
    assert [refused(answer)[:2] for answer in answers] == [(422, "VALIDATION_ERROR")] * 4
    assert listed(api) == books


strange: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 1.5, -1, 10**30, "", "1", "\ud800", [], [{}], {}, {"op": "delete"}]
)
names = st.sampled_from(["title", "isbn", "id", "version", "op", "book", "shelf", "non_field_errors", "\ud800"])
members = st.fixed_dictionaries({"title": st.just("Emma")}, optional={"isbn": st.sampled_from("ab")})
books_sent = members | members | st.dictionaries(names, strange, max_size=2) | strange
more = st.fixed_dictionaries({}, optional={"version": st.integers(1, 2) | strange})
any_operation = st.one_of(
    st.builds(lambda isbn: create(isbn=isbn), st.sampled_from("abcd")),
    st.builds(lambda name, value: create(**{name: value}), names, strange),
    st.builds(
        lambda pk, book, more: {"op": "update", "id": pk, "book": book, **more}, st.integers(0, 3), books_sent, more
    ),
    st.builds(lambda pk, more: {"op": "delete", "id": pk, **more}, st.integers(0, 3) | strange, more),
    st.dictionaries(names, strange, max_size=3) | strange,
)


@thorough
@given(operations=st.lists(any_operation, min_size=1, max_size=3))
def test_any_operations_are_all_carried_out_or_none(
    api: httpx.Client, books: list[dict[str, Any]], operations: list[Any]
) -> None:
    first = books[0]["id"]
    for one in operations:
        if isinstance(one, dict) and type(one.get("id")) is int:
            one["id"] += first
    before = listed(api)
    rehearsed, done = sent(api, *operations, dry_run=True), sent(api, *operations)
    assert rehearsed.status_code == done.status_code
    if done.is_success:
        assert [one["op"] for one in done.json()["results"]] == [one["op"] for one in operations]
    else:
        assert refused(done)[:2] in [(409, "CONFLICT"), (422, "VALIDATION_ERROR")]
        assert refused(done) == refused(rehearsed)
        assert listed(api) == before


@pytest.mark.parametrize("name", LENGTHS)
def test_texts_have_their_bounds(api: httpx.Client, books: list[dict[str, Any]], name: str) -> None:
    long, blank = {name: "a" * (LENGTHS[name] + 1)}, {name: " "}
    answer = sent(api, create(**long), update(books[0], **long), create(**blank), update(books[1], **blank))
    assert refused(answer) == (422, "VALIDATION_ERROR", [f"{place}.{name}" for place in range(4)])
    assert listed(api) == books


def test_many_members_that_are_not_known_are_refused_at_once(api: httpx.Client) -> None:
    members = {f"{'title author genre ' * 6}{number}": 1 for number in range(20)}
    started = time.monotonic()
    answer = sent(api, *(create(**members) for _ in range(1000)))
    assert time.monotonic() - started < 10
    assert refused(answer)[:2] == (422, "VALIDATION_ERROR")


def test_a_body_may_have_sixteen_mebibytes(api: httpx.Client) -> None:
    body = json.dumps({"operations": [create()]}).encode()
    answers = [api.post(BULK, content=body.ljust(size)) for size in (15 * MIB, 16 * MIB, 16 * MIB + 1, 17 * MIB)]
    assert [answer.status_code for answer in answers] == [200, 409, 413, 413]
    assert refused(answers[-1]) == (413, "PAYLOAD_TOO_LARGE", [])
    assert len(listed(api)) == 1


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("POST", BOOKS),
        ("PUT", f"{BOOKS}/1"),
        ("PATCH", f"{BOOKS}/1"),
        ("POST", "/api/books"),
        ("PUT", "/api/books/1"),
        ("PUT", "/api/books/bulk"),
    ],
)
def test_other_addresses_keep_one_mebibyte(api: httpx.Client, method: str, address: str) -> None:
    assert api.request(method, address, content=b"{}".ljust(MIB + 1)).status_code == 413


def test_the_server_reads_sixteen_mebibytes(service: Service) -> None:
    body = json.dumps({"operations": [create()]}).encode()
    parts = [body, *[b" " * MIB] * 15]
    with service.client() as client:
        answers = [
            client.post(f"{BULK}?dry_run=true", content=body.ljust(15 * MIB)),
            client.post(f"{BULK}?dry_run=true", content=iter(parts)),
            client.post(BULK, content=body.ljust(17 * MIB)),
            client.post(BULK, content=iter([*parts, b" " * MIB, b" " * MIB])),
            client.post(BOOKS, content=body.ljust(2 * MIB)),
        ]
    assert [answer.status_code for answer in answers] == [200, 200, 413, 413, 413]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("address", [BULK, f"{BULK}/"])
def test_it_is_posted_to_alone(api: httpx.Client, method: str, address: str) -> None:
    answer = api.request(method, address)
    assert (answer.status_code, allowed(answer)) == (405, {"POST", "OPTIONS"})


def test_version_1_has_none(api: httpx.Client) -> None:
    answer = api.post("/api/books/bulk", json={"operations": [create()]})
    assert (answer.status_code, list(answer.json())) == (405, ["detail"])
