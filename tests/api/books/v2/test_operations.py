"""POST /api/v2/operations and what follows: many books are edited or deleted by a worker, cancelled and undone."""

import json
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone
from django.utils.translation import override

from books.models import Actor, Book, Operation
from tests.support.books_admin import create_book
from tests.support.credentials import create_token_header
from tests.support.history import NOBODY
from tests.support.oauth_flows import create_key_header, create_librarian
from tests.support.operations import run_operations
from tests.support.pages import build_validation_error, parse_error

OPERATIONS = "/api/v2/operations"
SET_YEAR = {"kind": "edit", "filter": {"genre": "novel"}, "set": {"year": 1815, "available": False}}
DELETE_ALL = {"kind": "delete", "filter": {}}
NUL = "\0"
INVALID_BODIES: list[tuple[Any, list[str]]] = [
    ({}, ["kind", "filter"]),
    ({"kind": "mark", "filter": {}}, ["kind"]),
    ({"kind": "edit", "filter": {}}, ["body"]),
    ({**SET_YEAR, "replace": {"member": "title", "find": "a", "with": "b"}}, ["body"]),
    ({**DELETE_ALL, "set": {"year": 1}}, ["body"]),
    ({**DELETE_ALL, "events": 1}, ["events"]),
    ({"kind": "delete", "filter": {"gerne": "x"}}, ["filter.gerne"]),
    ({**DELETE_ALL, "filter": {"year_min": "1", "available": "true"}}, ["filter.available", "filter.year_min"]),
    ({**DELETE_ALL, "filter": {"q": 1}}, ["filter.q"]),
    ({"kind": "delete", "filter": {"title": "\ud800", "author": "a" * 501}}, ["filter.author", "filter.title"]),
    ({"kind": "delete", "filter": {"q": "a " * 21}}, ["filter.q"]),
    ({"kind": "edit", "filter": {}, "set": {"id": 7}}, ["body"]),
    ({**SET_YEAR, "set": {"title": " ", "year": 2**31, "publisher": "x"}}, ["set.title", "set.year", "set.publisher"]),
    (
        {"kind": "edit", "filter": {}, "replace": {"member": "year", "find": "", "with": None}},
        ["replace.member", "replace.find", "replace.with"],
    ),
    ({"kind": "edit", "filter": {}, "replace": {"member": "title", "find": NUL}}, ["replace.find", "replace.with"]),
    ({"kind": "edit", "filter": {}, "replace": {"member": "title", "find": "a", "with": "\ud800"}}, ["replace.with"]),
    ([SET_YEAR], ["body"]),
]  # fmt: skip


@pytest.fixture
def librarian(db: None) -> User:
    return create_librarian("ada", "Head librarians")


def begin(api: httpx.Client, key: dict[str, str], body: Any = SET_YEAR, **headers: str) -> httpx.Response:
    headers = {**key, "Content-Type": "application/json", **headers}
    return api.post(OPERATIONS, content=json.dumps(body), headers=headers)


def read(api: httpx.Client, key: dict[str, str], response: httpx.Response) -> dict[str, Any]:
    operation: dict[str, Any] = api.get(response.headers["Location"], headers=key).json()
    return operation


def post(api: httpx.Client, key: dict[str, str], operation: httpx.Response, action: str) -> httpx.Response:
    return api.post(f"{operation.headers['Location']}/{action}", headers=key)


def test_an_operation_of_a_program_has_no_language_and_fails_in_english(
    api: httpx.Client, key: dict[str, str], librarian: User
) -> None:
    german = {"Accept-Language": "de", "Cookie": "django_language=de"}
    begin(api, key, **german)
    librarian.groups.clear()
    with override("de"):
        run_operations()
    operation = Operation.objects.get()
    assert "language" not in (operation.parameters or {})
    assert operation.error == "Who began this may not do so any more."


def test_an_operation_is_accepted_done_and_undone(api: httpx.Client, key: dict[str, str]) -> None:
    create_book(genre="Novel"), create_book(genre="A novel", year=1815, available=False), create_book(genre="Poem")
    accepted = begin(api, key)
    waiting = accepted.json()
    pk = waiting["id"]
    assert (accepted.status_code, accepted.headers["Location"]) == (202, f"{OPERATIONS}/{pk}")
    assert waiting == {
        "id": pk,
        "kind": "edit",
        "state": "waiting",
        "matched": None,
        "changed": 0,
        "unchanged": 0,
        "refused": 0,
        "undo_of": None,
        "undone_by": None,
        "created_at": waiting["created_at"],
        "finished_at": None,
    }
    run_operations()
    done = read(api, key, accepted)
    assert done == {
        **waiting,
        "state": "done",
        "matched": 2,
        "changed": 1,
        "unchanged": 1,
        "finished_at": done["finished_at"],
    }
    assert done["finished_at"].endswith("Z")
    undo = post(api, key, accepted, "undo")
    assert (undo.status_code, undo.json()["kind"], undo.json()["undo_of"]) == (202, "undo", pk)
    assert read(api, key, accepted)["undone_by"] == undo.json()["id"]
    run_operations()
    assert sorted(Book.objects.values_list("year", "available")) == [(1813, True), (1813, True), (1815, False)]
    assert read(api, key, undo)["state"] == "done"
    assert parse_error(post(api, key, accepted, "undo")) == (409, "CONFLICT", [])
    assert post(api, key, undo, "undo").status_code == 202


def test_the_history_names_the_operation_and_who_began_it(api: httpx.Client, key: dict[str, str]) -> None:
    book = create_book(genre="Novel")
    operation = begin(api, key).json()
    run_operations()
    [entry, _] = api.get(f"/api/v2/books/{book.pk}/history", headers=key).json()["results"]
    assert (entry["channel"], entry["operation"]) == ("operation", operation["id"])
    assert entry["actor"] == {**NOBODY, "user": "ada", "api_key": "Test"}
    assert Actor.objects.filter(channel="operation", user_name="ada").count() == 1


def test_a_dry_run_says_what_would_change(api: httpx.Client, key: dict[str, str]) -> None:
    book = create_book(genre="Novel", title="Emma")
    body = {"kind": "edit", "filter": {"q": "emma"}, "replace": {"member": "title", "find": "mm", "with": "M"}}
    response = api.post(f"{OPERATIONS}?dry_run=true", json=body, headers=key)
    sample = {"id": book.pk, "before": {"title": "Emma"}, "after": {"title": "EMa"}}
    assert (response.status_code, response.json()) == (200, {"matched": 1, "would_change": 1, "samples": [sample]})
    deletion = api.post(f"{OPERATIONS}?dry_run=true", json=DELETE_ALL, headers=key).json()
    assert deletion["samples"][0]["before"]["isbn"] == book.isbn
    assert deletion["samples"][0]["after"] is None
    assert not Operation.objects.exists()


def test_all_filters_choose_as_the_list_does(api: httpx.Client, key: dict[str, str]) -> None:
    create_book(title="Émma", author="J. Austen", genre="Novel", year=1815, isbn="978-0-14-143951-8")
    create_book(title="Emma", author="J. Austin", genre="Novel", year=1816, available=False)
    for filters in (
        {"title": "émm"}, {"author": "austen"}, {"year_max": 1815}, {"isbn": "9780141439518"}, {"available": True},
        {"q": "novel austen"}, {"genre": "nov", "year_min": 1815, "year_max": 1815}, {"year_min": 10**30},
        {"title": ""},
    ):  # fmt: skip
        query: dict[str, Any] = {
            name: str(value).lower() if isinstance(value, bool) else value for name, value in filters.items()
        }
        listed = api.get("/api/v2/books", params=query).json()["results"]
        body = {"kind": "delete", "filter": filters}
        preview = api.post(f"{OPERATIONS}?dry_run=true", json=body, headers=key).json()
        assert [sample["id"] for sample in preview["samples"]] == [book["id"] for book in listed], filters


def test_what_is_wrong_is_named(api: httpx.Client, key: dict[str, str]) -> None:
    for body, fields in INVALID_BODIES:
        status, code, named = parse_error(begin(api, key, body))
        assert (status, code, sorted(named)) == (422, "VALIDATION_ERROR", sorted(fields)), body
    response = api.post(f"{OPERATIONS}?dry_run=yes", json=SET_YEAR, headers=key)
    assert parse_error(response) == build_validation_error("dry_run")
    assert not Operation.objects.exists()


def test_operations_of_others_are_for_head_librarians(api: httpx.Client, key: dict[str, str]) -> None:
    operation = begin(api, key)
    grace = create_librarian("grace")
    other_key = create_key_header(grace)
    assert read(api, other_key, operation)["state"] == "waiting"
    assert parse_error(post(api, other_key, operation, "cancel")) == (403, "FORBIDDEN", [])
    assert parse_error(post(api, other_key, operation, "undo")) == (403, "FORBIDDEN", [])
    grace.groups.add(Group.objects.get(name="Head librarians"))
    assert post(api, other_key, operation, "cancel").json()["state"] == "cancelled"


def test_an_app_may_end_what_its_person_began(api: httpx.Client, key: dict[str, str], librarian: User) -> None:
    operation = begin(api, key)
    token = create_token_header(librarian, scope="write")
    assert post(api, token, operation, "cancel").status_code == 202


def test_what_is_done_cannot_be_cancelled(api: httpx.Client, key: dict[str, str]) -> None:
    create_book(genre="Novel")
    operation = begin(api, key)
    assert parse_error(post(api, key, operation, "undo")) == (409, "CONFLICT", [])
    run_operations()
    assert parse_error(post(api, key, operation, "cancel")) == (409, "CONFLICT", [])
    undo = post(api, key, operation, "undo")
    assert post(api, key, undo, "cancel").json()["state"] == "cancelled"
    assert read(api, key, operation)["undone_by"] is None
    assert parse_error(post(api, key, undo, "undo")) == (409, "CONFLICT", [])


def test_a_repeated_request_begins_one_operation(api: httpx.Client, key: dict[str, str]) -> None:
    create_book(genre="Novel")
    first, second = (begin(api, key, **{"Idempotency-Key": "k-1"}) for _ in range(2))
    assert (first.content, first.headers["Location"]) == (second.content, second.headers["Location"])
    assert second.headers["Idempotent-Replayed"] == "true"
    run_operations()
    assert Operation.objects.count() == 1
    other = begin(api, key, {**SET_YEAR, "events": False}, **{"Idempotency-Key": "k-1"})
    assert parse_error(other)[0] == 422


def test_operations_that_were_done_at_once_are_shown_too(api: httpx.Client, key: dict[str, str]) -> None:
    book = create_book()
    body = {"operations": [{"op": "update", "id": book.pk, "book": {"year": 1}}]}
    api.post("/api/v2/books/bulk", json=body, headers=key)
    operation = Operation.objects.get()
    shown = api.get(f"{OPERATIONS}/{operation.pk}", headers=key).json()
    assert (shown["kind"], shown["state"], shown["changed"]) == ("bulk", "done", 1)
    assert shown["finished_at"] == shown["created_at"]
    assert api.post(f"{OPERATIONS}/{operation.pk}/undo", headers=key).status_code == 202
    run_operations()
    assert Book.objects.get().year == 1813


def list_own(api: httpx.Client, key: dict[str, str], query: str = "") -> list[int]:
    return [operation["id"] for operation in api.get(f"{OPERATIONS}{query}", headers=key).json()["results"]]


def test_a_person_lists_the_operations_of_all_credentials(
    api: httpx.Client, key: dict[str, str], librarian: User
) -> None:
    """The newest first, as each is shown alone, and no operation of anybody else."""
    create_book(genre="Novel")
    done, waiting = (begin(api, header).json()["id"] for header in (key, create_token_header(librarian, scope="write")))
    other_key = create_key_header(create_librarian("grace", "Head librarians"))
    foreign = begin(api, other_key).json()["id"]
    Operation.objects.filter(pk=done).update(state="done", next_at=None)
    undo = Operation.objects.create(
        kind="undo", undo_of_id=done, actor_id=Operation.objects.get(pk=done).actor_id, created_at=timezone.now()
    ).pk
    page = api.get(OPERATIONS, headers=key)
    assert [operation["id"] for operation in page.json()["results"]] == [undo, waiting, done]
    assert page.json()["results"] == [api.get(f"{OPERATIONS}/{pk}", headers=key).json() for pk in (undo, waiting, done)]
    assert page.json()["results"][-1]["undone_by"] == undo
    assert page.headers["Cache-Control"] == "no-store"
    assert list_own(api, key, "?state=waiting") == [waiting]
    assert list_own(api, other_key) == [foreign]
    assert list_own(api, create_key_header(create_librarian("new"))) == []


def test_pages_of_operations_lead_forward_and_back(api: httpx.Client, key: dict[str, str]) -> None:
    pks = [begin(api, key).json()["id"] for _ in range(3)]
    first = api.get(f"{OPERATIONS}?limit=2&state=waiting", headers=key).json()
    assert ([row["id"] for row in first["results"]], first["previous"]) == ([pks[2], pks[1]], None)
    second = api.get(first["next"], headers=key)
    assert ([row["id"] for row in second.json()["results"]], second.json()["next"]) == ([pks[0]], None)
    assert second.headers["Link"] == f'<{second.json()["previous"]}>; rel="prev"'
    assert api.get(second.json()["previous"], headers=key).json() == {**first, "previous": None}


def test_what_is_wrong_with_the_query_of_a_list_is_named(api: httpx.Client, key: dict[str, str]) -> None:
    query = {"state": "lost", "limit": "0", "cursor": "x"}
    assert parse_error(api.get(OPERATIONS, params=query, headers=key)) == build_validation_error(*query)


def test_what_is_under_way_says_when_to_ask_again(api: httpx.Client, key: dict[str, str]) -> None:
    create_book(genre="Novel")
    accepted = begin(api, key, **{"Idempotency-Key": "k-1"})
    waits = [
        accepted,
        begin(api, key, **{"Idempotency-Key": "k-1"}),
        api.get(accepted.headers["Location"], headers=key),
    ]
    assert [response.headers["Retry-After"] for response in waits] == ["1", "1", "1"]
    run_operations()
    assert "Retry-After" not in api.get(accepted.headers["Location"], headers=key).headers
    undo = post(api, key, accepted, "undo")
    assert undo.headers["Retry-After"] == "1"
    assert "Retry-After" not in post(api, key, undo, "cancel").headers
