"""GET /api/v2/books: the pages of the list, their links and headers, and which queries are refused."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from django.conf import settings

from books.writing import changes
from tests.support.books import ACTOR, build_book
from tests.support.pages import LIST_URL, SORT_ORDERS, build_validation_error, forge_cursor, list_ids, parse_error

STALE = '"of another time"'


@pytest.fixture
def stored_titles(api: httpx.Client) -> list[str]:
    """The titles of 102 books, in the order of their creation."""
    names = [f"Volume {number}" for number in range(102)]
    changes.create_books([build_book(title=name) for name in names], ACTOR, now=datetime.now(UTC))
    return names


def list_titles(response: httpx.Response) -> list[str]:
    return [book["title"] for book in response.json()["results"]]


def test_a_page_holds_whole_books(api: httpx.Client) -> None:
    books = [api.post(LIST_URL, json=build_book(isbn=isbn)).json() for isbn in ("0-14-143951-3", "emma")]
    books[1] = api.patch(f"{LIST_URL}/{books[1]['id']}", json={"year": -44}).json()
    page = {"results": books, "next": None, "previous": None, "count": 2}
    assert api.get(f"{LIST_URL}?count=true").json() == page


def test_a_page_holds_100_books_unless_asked_otherwise(api: httpx.Client, stored_titles: list[str]) -> None:
    response = api.get(LIST_URL)
    assert list_titles(response) == stored_titles[:100]
    assert response.json()["previous"] is None
    assert list_titles(api.get(response.json()["next"])) == stored_titles[100:]


def test_the_link_header_has_the_links_of_the_body(api: httpx.Client, stored_titles: list[str]) -> None:
    """The last page is full, and has no next one."""
    first = api.get(f"{LIST_URL}?limit=34", headers={"Host": "localhost"})
    assert first.json()["next"].startswith(f"{settings.PUBLIC_URL}{LIST_URL}?limit=34&cursor=")
    second = api.get(first.json()["next"])
    third = api.get(second.json()["next"])
    assert list_titles(third) == stored_titles[68:]
    assert first.headers["Link"] == f'<{first.json()["next"]}>; rel="next"'
    assert second.headers["Link"] == f'<{second.json()["next"]}>; rel="next", <{second.json()["previous"]}>; rel="prev"'
    assert third.headers["Link"] == f'<{third.json()["previous"]}>; rel="prev"'


def test_links_keep_the_query(api: httpx.Client) -> None:
    for number in range(5):
        api.post(LIST_URL, json=build_book(title=f"100% é & =+#{number}", year=number))
    query = {
        "title": "100% É & =+#", "author": "AUSTEN", "genre": "novel", "available": "true", "year_min": "1",
        "year_max": "3", "q": "austen 100%", "sort": "-year", "fields": "year", "count": "true", "limit": "1",
    }  # fmt: skip
    first = api.get(LIST_URL, params=query).json()
    second = api.get(first["next"]).json()
    back = api.get(second["previous"]).json()
    assert [page["results"] for page in (first, second, back)] == [[{"year": 3}], [{"year": 2}], [{"year": 3}]]
    assert [page["count"] for page in (first, second, back)] == [3, 3, 3]


def test_books_are_counted_on_request_alone(api: httpx.Client, stored_titles: list[str]) -> None:
    for query, count in (("limit=1", 102), ("title=volume+50", 1), ("title=nothing", 0)):
        assert api.get(f"{LIST_URL}?count=true&{query}").json()["count"] == count
    for query in ("", "?count=false"):
        assert list(api.get(f"{LIST_URL}{query}").json()) == ["results", "next", "previous"]


def test_the_page_a_client_has_is_not_sent_again(api: httpx.Client, book: dict[str, Any]) -> None:
    etag = api.get(LIST_URL).headers["ETag"]
    for value in (etag, f"W/{etag}", "*", f"{STALE}, {etag}"):
        response = api.get(LIST_URL, headers={"If-None-Match": value})
        assert (response.status_code, response.content, response.headers["ETag"]) == (304, b"", etag)
    response = api.get(LIST_URL, headers={"If-Match": STALE})
    assert parse_error(response) == (412, "PRECONDITION_FAILED", [])
    api.put(f"/api/books/{book['id']}", json={"year": 2000})
    assert api.get(LIST_URL, headers={"If-None-Match": etag}).json()["results"][0]["year"] == 2000


def test_all_problems_of_a_query_are_listed_together(api: httpx.Client) -> None:
    query = {
        "sort": "shelf", "limit": "0", "count": "yes", "cursor": "garbage", "fields": "tittle", "available": "1",
        "year_min": "1.5", "year_max": "", "title": "t" * 501, "author": "\0", "genre": "g" * 501, "isbn": "i" * 501,
        "q": "w " * 21,
    }  # fmt: skip
    response = api.get(LIST_URL, params=query)
    assert response.status_code == 422
    messages = {detail["field"]: detail["message"] for detail in response.json()["error"]["details"]}
    too_long = "Ensure this value has at most 500 characters (it has 501)."
    assert messages == {
        "sort": "It is one of id, title, author, year, created_at, perhaps behind a minus.",
        "limit": "Input should be greater than or equal to 1.",
        "count": "Input should be true or false.",
        "fields": '"tittle": It is not known here; the nearest name is title.',
        "available": "Input should be true or false.",
        "year_min": "Input should be a valid integer.",
        "year_max": "Input should be a valid integer.",
        "title": too_long,
        "author": "Null characters are not allowed.",
        "genre": too_long,
        "isbn": too_long,
        "q": "Ensure that there are no more than 20 words.",
    }


def test_a_value_that_is_not_of_its_kind_is_refused(api: httpx.Client) -> None:
    values = {
        "limit": ["+1", "1e2", "0", "-1", "501", "9" * 5_000],
        "year_min": ["%D9%A1", "null"],
        "year_max": ["%20", "-"],
        "available": ["", "0", "True", "true%20"],
        "count": ["1", "FALSE"],
        "sort": ["", "--id", "%2Bid", "ID", "id,title", "isbn", "title_folded", "%00", "-%FF", "x" * 5_000],
        **{name: ["%00", "a%00", "%F0%90%90%A8" * 501] for name in ("title", "author", "genre", "isbn", "q")},
    }
    for name, texts in values.items():
        for text in texts:
            assert parse_error(api.get(f"{LIST_URL}?{name}={text}")) == build_validation_error(name), text


def test_only_known_parameters_may_be_sent(api: httpx.Client) -> None:
    assert api.get(f"{LIST_URL}?&&limit=5&").status_code == 200
    for query in ("skip=1", "format=json", "=1", "%00=1", "%FF=1", "x" * 5_000):
        status, code, fields = parse_error(api.get(f"{LIST_URL}?{query}"))
        assert (status, code, len(fields)) == (400, "UNKNOWN_PARAMETER", 1), query


@pytest.mark.parametrize("cursor_order", ["id", "-title"])
def test_a_cursor_is_for_its_own_order(api: httpx.Client, book: dict[str, Any], cursor_order: str) -> None:
    api.post(LIST_URL, json=build_book())
    query = httpx.URL(api.get(f"{LIST_URL}?limit=1&sort={cursor_order}").json()["next"]).params
    orders = {
        order: api.get(LIST_URL, params={"sort": order, "cursor": query["cursor"]}).status_code for order in SORT_ORDERS
    }
    assert orders == {order: 200 if order == cursor_order else 422 for order in SORT_ORDERS}


INVALID_CURSORS: dict[str, list[str]] = {
    "id": [
        "garbage",
        "A" * 50_000,
        forge_cursor(["id", False, 1]),
        forge_cursor(["id", False, "1", 1]),
        forge_cursor(["id", False, 1, 2**63]),
        forge_cursor(b"[" * 1_400),
    ],
    "year": [forge_cursor(["year", False, key, 1]) for key in ("1813", True, 2**63)],
    "title": [forge_cursor(["title", False, key, 1]) for key in (1, "a\0", "\ud800", "a" * 3_000)],
    "author": [forge_cursor(b'["author",false,"\xff",1]')],
    "created_at": [
        forge_cursor(["created_at", False, key, 1])
        for key in (
            1,
            "now",
            "0001-01-01T00:00+23:59",
            "9999-12-31T23:59-23:59",
        )
    ],
}


def test_an_invalid_cursor_is_refused(api: httpx.Client, book: dict[str, Any]) -> None:
    for sort, texts in INVALID_CURSORS.items():
        for text in texts:
            response = api.get(LIST_URL, params={"sort": sort, "cursor": text})
            assert parse_error(response) == build_validation_error("cursor"), (sort, text[:100])


@pytest.mark.parametrize(
    ("order", "backward"), [("id", False), ("-year", True), ("title", True), ("-author", False), ("created_at", True)]
)
def test_a_cursor_beyond_all_books_is_valid(
    api: httpx.Client, book: dict[str, Any], order: str, backward: bool
) -> None:
    keys = {"title": "", "-author": "\U0010ffff" * 100, "created_at": "9999-12-31T23:59:59.999999"}
    for number in (0, 2**31, -(2**31) - 1, 2**63 - 2, -(2**63) + 2):
        cursor = forge_cursor([order, backward, keys.get(order, number), number])
        response = api.get(LIST_URL, params={"sort": order, "cursor": cursor, "count": "true"})
        assert (response.status_code, response.json()["count"]) == (200, 1), number
        assert list_ids(response) in ([], [book["id"]]), number
