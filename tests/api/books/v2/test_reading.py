"""GET /api/v2/books/{book_id}: one book, or some of its members."""

import re
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.pages import build_validation_error, parse_error
from tests.support.server import Service

LIST = "/api/v2/books"
MEMBERS = [
    "id",
    "title",
    "author",
    "year",
    "isbn",
    "isbn13",
    "genre",
    "available",
    "created_at",
    "updated_at",
    "version",
]
STALE = '"of another time"'
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@pytest.fixture
def stored_book(api: httpx.Client, book: dict[str, Any]) -> dict[str, Any]:
    """A stored book as it is read."""
    read: dict[str, Any] = api.get(f"{LIST}/{book['id']}").json()
    return read


@pytest.fixture
def address(book: dict[str, Any]) -> str:
    return f"{LIST}/{book['id']}"


@pytest.fixture
def etag(api: httpx.Client, address: str) -> str:
    return str(api.get(address).headers["ETag"])


def test_a_book_is_answered_whole(api: httpx.Client) -> None:
    book = api.post(LIST, json=build_book(isbn="0-14-143951-3")).json()
    answer = api.get(f"{LIST}/{book['id']}")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json() == {
        "id": book["id"],
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": "0-14-143951-3",
        "isbn13": "9780141439518",
        "genre": "Novel",
        "available": True,
        "created_at": book["created_at"],
        "updated_at": book["created_at"],
        "version": 1,
    }


def test_both_versions_show_one_book(api: httpx.Client, book: dict[str, Any], stored_book: dict[str, Any]) -> None:
    assert stored_book == {
        **book,
        "isbn13": None,
        "created_at": f"{book['created_at']}Z",
        "updated_at": f"{book['created_at']}Z",
        "version": 1,
    }


def test_times_are_instants_in_utc(api: httpx.Client) -> None:
    before = datetime.now(UTC)
    read = api.get(api.post(LIST, json=build_book()).headers["Location"]).json()
    after = datetime.now(UTC)
    assert INSTANT.fullmatch(read["created_at"])
    assert INSTANT.fullmatch(read["updated_at"])
    assert before <= datetime.fromisoformat(read["created_at"]) <= after


def test_a_change_raises_version_and_updated_at(api: httpx.Client, address: str, stored_book: dict[str, Any]) -> None:
    api.put(f"/api/books/{stored_book['id']}", json={"year": 2000})
    changed_book = api.get(address).json()
    assert changed_book["updated_at"] > stored_book["updated_at"]
    assert changed_book == {**stored_book, "year": 2000, "version": 2, "updated_at": changed_book["updated_at"]}


@pytest.mark.parametrize(
    "names",
    [*([name] for name in MEMBERS), ["id", "title"], ["title", "id"], ["version", "isbn13", "available"], MEMBERS],
    ids=",".join,
)
def test_a_client_may_select_members(
    api: httpx.Client, address: str, stored_book: dict[str, Any], names: list[str]
) -> None:
    answer = api.get(address, params={"fields": ",".join(names)})
    assert (answer.status_code, answer.json()) == (200, {name: stored_book[name] for name in names})


def test_a_member_named_twice_is_shown_once(api: httpx.Client, address: str, stored_book: dict[str, Any]) -> None:
    assert api.get(f"{address}?fields=id,title,id").text == api.get(f"{address}?fields=id,title").text


def test_an_unknown_member_is_answered_with_the_nearest(api: httpx.Client, address: str) -> None:
    answer = api.get(f"{address}?fields=id,tittle,created", headers={"X-Request-ID": "pick-of-members"})
    assert answer.status_code == 422
    assert answer.json() == {
        "error": {
            "code": "VALIDATION_ERROR",
            "message": "The request is not valid",
            "details": [
                {"field": "fields", "message": '"tittle": It is not known here; the nearest name is title.'},
                {"field": "fields", "message": '"created": It is not known here; the nearest name is created_at.'},
            ],
            "requestId": "pick-of-members",
        }
    }


@pytest.mark.parametrize(
    "value", ["", ",", "id,", "id,,title", "ID", "%20id", "id;title", "%00", "*", "title_folded", "x" * 5_000]
)
def test_only_existing_members_may_be_selected(api: httpx.Client, address: str, value: str) -> None:
    status, code, fields = parse_error(api.get(f"{address}?fields={value}"))
    assert (status, code, set(fields)) == (422, "VALIDATION_ERROR", {"fields"})


def test_the_etag_is_the_same_whatever_members_are_selected(api: httpx.Client, address: str, etag: str) -> None:
    assert api.get(f"{address}?fields=title").headers["ETag"] == etag
    assert api.get(f"{address}?fields=title", headers={"If-None-Match": etag}).status_code == 304


def test_the_book_a_client_has_is_not_sent_again(api: httpx.Client, address: str, etag: str) -> None:
    answer = api.get(address, headers={"If-None-Match": etag})
    assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", etag)


def test_a_tag_is_strong(etag: str) -> None:
    assert etag[0] == etag[-1] == '"'


@pytest.mark.parametrize("value", ["W/{etag}", "*", f"{STALE}, {{etag}}"])
def test_any_of_several_etags_may_match(api: httpx.Client, address: str, etag: str, value: str) -> None:
    assert api.get(address, headers={"If-None-Match": value.format(etag=etag)}).status_code == 304


@pytest.mark.parametrize("change", [{"title": "Emma"}, {"isbn": "9780141439587"}, {"year": 0}])
def test_a_changed_book_is_sent_again(
    api: httpx.Client, book: dict[str, Any], address: str, etag: str, change: dict[str, Any]
) -> None:
    api.put(f"/api/books/{book['id']}", json=change)
    answer = api.get(address, headers={"If-None-Match": etag})
    assert answer.status_code == 200
    assert answer.headers["ETag"] != etag
    assert answer.json() == {**answer.json(), **change}


@pytest.mark.parametrize("value", ["{etag}", "*", f"{STALE}, {{etag}}"])
def test_a_client_may_ask_for_the_state_it_knows(api: httpx.Client, address: str, etag: str, value: str) -> None:
    assert api.get(address, headers={"If-Match": value.format(etag=etag)}).status_code == 200


@pytest.mark.parametrize("value", [STALE, "W/{etag}", "unquoted"])
def test_a_book_in_another_state_is_not_sent(api: httpx.Client, address: str, etag: str, value: str) -> None:
    answer = api.get(address, headers={"If-Match": value.format(etag=etag)})
    assert parse_error(answer) == (412, "PRECONDITION_FAILED", [])


def test_the_two_versions_have_different_etags(api: httpx.Client, book: dict[str, Any], etag: str) -> None:
    address = f"/api/books/{book['id']}"
    second = {"Accept": "application/vnd.library.v2+json"}
    assert api.get(address, headers=second).headers["ETag"] == etag
    answer = api.get(address, headers={"If-None-Match": etag})
    assert (answer.status_code, answer.json()) == (200, book)


@pytest.mark.parametrize(
    ("name", "nearest"), [("field", "fields"), ("feilds", "fields"), ("FIELDS", "fields"), ("limit", "fields")]
)
def test_an_unknown_parameter_is_answered_with_the_nearest(
    api: httpx.Client, address: str, name: str, nearest: str
) -> None:
    answer = api.get(f"{address}?fields=id&{name}=1")
    assert parse_error(answer) == (400, "UNKNOWN_PARAMETER", [name])
    assert nearest in answer.json()["error"]["details"][0]["message"]


@pytest.mark.parametrize("query", ["", "?fields=nothing", "?fields=", "?shelf=1", "?fields=nothing&shelf=1"])
@pytest.mark.parametrize("headers", [{}, {"If-Match": STALE}, {"If-None-Match": "*"}])
def test_absence_outranks_all_else(api: httpx.Client, query: str, headers: dict[str, str]) -> None:
    answer = api.get(f"{LIST}/987654321{query}", headers={**headers, "X-Request-ID": "absent-book"})
    assert answer.status_code == 404
    assert answer.json() == {
        "error": {"code": "NOT_FOUND", "message": "Book not found", "requestId": "absent-book"},
    }


def test_a_bad_query_outranks_the_state(api: httpx.Client, address: str) -> None:
    assert parse_error(api.get(f"{address}?fields=nothing", headers={"If-Match": STALE})) == build_validation_error(
        "fields"
    )


@pytest.mark.parametrize(
    "book_id",
    ["0", "-0", "-5", 2**31, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, "9" * 5_000, "-" + "9" * 5_000],
    ids=lambda value: str(value)[:25],
)
def test_an_integer_that_names_no_book_is_not_found(
    api: httpx.Client, stored_book: dict[str, Any], book_id: object
) -> None:
    assert parse_error(api.get(f"{LIST}/{book_id}")) == (404, "NOT_FOUND", [])


@pytest.mark.parametrize(
    "book_id",
    ["abc", "+5", "1.0", "1e3", "0x1", "1_0", "--1", "-", "1-", "%20", "%201", "1%20", "1%0A", "%00", "null", "true"],
)
def test_an_id_that_is_no_integer_is_refused(api: httpx.Client, book: dict[str, Any], book_id: str) -> None:
    assert parse_error(api.get(f"{LIST}/{book_id}")) == build_validation_error("book_id")


@pytest.mark.parametrize("book_id", ["١", "１", "²", "−1", "%FF"])
def test_digits_other_than_ascii_are_no_integer(service: Service, book_id: str) -> None:
    with service.open_client() as client:
        assert parse_error(client.get(f"{LIST}/{book_id}")) == build_validation_error("book_id")


@pytest.mark.parametrize("zeros", [2, 5_000])
def test_leading_zeros_change_nothing(api: httpx.Client, stored_book: dict[str, Any], etag: str, zeros: int) -> None:
    answer = api.get(f"{LIST}/{'0' * zeros}{stored_book['id']}")
    assert (answer.json(), answer.headers["ETag"]) == (stored_book, etag)


def test_a_slash_at_the_end_changes_nothing(api: httpx.Client, address: str, stored_book: dict[str, Any]) -> None:
    assert api.get(f"{address}/").json() == stored_book


@pytest.mark.parametrize("path", ["/2", "/2?fields=id", "/987654321", "/two", "?limit=2", "?limit=0", "?shelf=1"])
def test_head_is_get_without_a_body(service: Service, path: str) -> None:
    headers = {"X-Request-ID": "head-and-get"}
    with service.open_client() as client:
        read = client.get(f"{LIST}{path}", headers=headers)
        head = client.head(f"{LIST}{path}", headers=headers)
    names = ["Content-Type", "Content-Length", "ETag", "Link"]
    assert (head.status_code, head.content) == (read.status_code, b"")
    assert [head.headers.get(name) for name in names] == [read.headers.get(name) for name in names]
