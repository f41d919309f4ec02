"""GET /api/v2/books: the pages of the list, their links and headers, and which queries are refused."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from books.writing import changes
from tests.support.books import ACTOR, build_book
from tests.support.pages import LIST_URL, SORT_ORDERS, build_validation_error, forge_cursor, list_ids, parse_error
from tests.support.strategies import any_json, hypothesis_settings

STALE = '"of another time"'


@pytest.fixture
def stored_titles(api: httpx.Client) -> list[str]:
    """The titles of 501 books, in the order of their creation."""
    names = [f"Volume {number}" for number in range(501)]
    changes.create_books([build_book(title=name) for name in names], ACTOR, now=datetime.now(UTC))
    return names


def list_titles(response: httpx.Response) -> list[str]:
    return [book["title"] for book in response.json()["results"]]


def test_an_empty_library_is_an_empty_page(api: httpx.Client) -> None:
    response = api.get(LIST_URL)
    assert (response.status_code, response.json()) == (200, {"results": [], "next": None, "previous": None})
    assert response.headers["Content-Type"] == "application/json"
    assert "Link" not in response.headers


def test_a_page_holds_whole_books(api: httpx.Client) -> None:
    first = api.post(LIST_URL, json=build_book(isbn="0-14-143951-3")).json()
    second = api.post(LIST_URL, json=build_book(title="Emma", year=-44, isbn="emma")).json()
    api.put(f"/api/books/{second['id']}", json={"year": 1815})
    updated_at = api.get(f"{LIST_URL}/{second['id']}").json()["updated_at"]
    assert api.get(f"{LIST_URL}?count=true").json() == {
        "results": [
            {
                "id": first["id"],
                "title": "Pride and Prejudice",
                "author": "Jane Austen",
                "year": 1813,
                "isbn": "0-14-143951-3",
                "isbn13": "9780141439518",
                "genre": "Novel",
                "available": True,
                "created_at": first["created_at"],
                "updated_at": first["created_at"],
                "version": 1,
            },
            {
                "id": second["id"],
                "title": "Emma",
                "author": "Jane Austen",
                "year": 1815,
                "isbn": "emma",
                "isbn13": None,
                "genre": "Novel",
                "available": True,
                "created_at": second["created_at"],
                "updated_at": updated_at,
                "version": 2,
            },
        ],
        "next": None,
        "previous": None,
        "count": 2,
    }


def test_a_page_holds_100_books_unless_asked_otherwise(api: httpx.Client, stored_titles: list[str]) -> None:
    response = api.get(LIST_URL)
    assert list_titles(response) == stored_titles[:100]
    assert response.json()["previous"] is None
    assert list_titles(api.get(response.json()["next"])) == stored_titles[100:200]


@pytest.mark.parametrize(("query", "number"), [("limit=1", 1), ("limit=500", 500), ("limit=007", 7)])
def test_a_page_is_as_long_as_its_limit(api: httpx.Client, stored_titles: list[str], query: str, number: int) -> None:
    assert list_titles(api.get(f"{LIST_URL}?{query}")) == stored_titles[:number]


@pytest.mark.parametrize("limit", [499, 500])
def test_the_last_page_has_no_next(api: httpx.Client, stored_titles: list[str], limit: int) -> None:
    last = api.get(api.get(f"{LIST_URL}?limit={limit}").json()["next"])
    assert (list_titles(last), last.json()["next"]) == (stored_titles[limit:], None)


@pytest.mark.parametrize(("query", "last"), [("limit=3", "C"), ("limit=3&sort=-title", "A"), ("", "C")])
def test_a_page_with_exactly_all_books_is_the_last(api: httpx.Client, query: str, last: str) -> None:
    for title in "ABC":
        api.post(LIST_URL, json=build_book(title=title))
    response = api.get(f"{LIST_URL}?{query}")
    assert (list_titles(response)[-1], response.json()["next"], response.json()["previous"]) == (last, None, None)


def test_the_link_header_has_the_links_of_the_body(api: httpx.Client, stored_titles: list[str]) -> None:
    first = api.get(f"{LIST_URL}?limit=200")
    second = api.get(first.json()["next"])
    third = api.get(second.json()["next"])
    assert first.headers["Link"] == f'<{first.json()["next"]}>; rel="next"'
    assert second.headers["Link"] == f'<{second.json()["next"]}>; rel="next", <{second.json()["previous"]}>; rel="prev"'
    assert third.headers["Link"] == f'<{third.json()["previous"]}>; rel="prev"'


def test_links_begin_with_the_public_url(api: httpx.Client, stored_titles: list[str], settings: Settings) -> None:
    settings.PUBLIC_URL = "https://library.example"
    first = api.get(f"{LIST_URL}?limit=1", headers={"Host": "127.0.0.1:9999"}).json()
    second = api.get(first["next"].replace("https://library.example", "")).json()
    assert first["next"].startswith("https://library.example/api/v2/books?limit=1&cursor=")
    assert second["previous"].startswith("https://library.example/api/v2/books?limit=1&cursor=")


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("/api/books?version=2&limit=1", {}),
        ("/api/books?limit=1", {"Accept": "application/vnd.library.v2+json"}),
        ("/api/books?limit=1", {"Accept": "application/vnd.library+json"}),
        ("/api/v2/books/?limit=1", {}),
    ],
)
def test_links_stay_in_this_version_however_it_was_selected(
    api: httpx.Client, stored_titles: list[str], address: str, headers: dict[str, str]
) -> None:
    next_address = api.get(address, headers=headers).json()["next"]
    assert list_titles(api.get(next_address)) == ["Volume 1"]


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


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("count=true", 501),
        ("count=true&limit=1", 501),
        ("count=true&title=volume+50", 2),
        ("count=true&title=nothing", 0),
        (f"count=true&year_min={10**30}", 0),
    ],
)
def test_books_are_counted_on_request(api: httpx.Client, stored_titles: list[str], query: str, count: int) -> None:
    assert api.get(f"{LIST_URL}?{query}").json()["count"] == count


@pytest.mark.parametrize("query", ["", "?count=false"])
def test_books_are_not_counted_without_a_request(api: httpx.Client, stored_titles: list[str], query: str) -> None:
    assert list(api.get(f"{LIST_URL}{query}").json()) == ["results", "next", "previous"]


@pytest.mark.parametrize("value", ["{etag}", "W/{etag}", "*", f"{STALE}, {{etag}}"])
def test_the_page_a_client_has_is_not_sent_again(api: httpx.Client, book: dict[str, Any], value: str) -> None:
    etag = api.get(LIST_URL).headers["ETag"]
    response = api.get(LIST_URL, headers={"If-None-Match": value.format(etag=etag)})
    assert (response.status_code, response.content, response.headers["ETag"]) == (304, b"", etag)


def test_a_changed_page_is_sent_again(api: httpx.Client, book: dict[str, Any]) -> None:
    def read_new_etag() -> str:
        response = api.get(LIST_URL, headers={"If-None-Match": ", ".join(etags)})
        assert response.status_code == 200
        return str(response.headers["ETag"])

    etags = [api.get(LIST_URL).headers["ETag"]]
    api.post(LIST_URL, json=build_book())
    etags.append(read_new_etag())
    api.put(f"/api/books/{book['id']}", json={"year": 2000})
    etags.append(read_new_etag())
    api.delete(f"/api/books/{book['id']}")
    etags.append(read_new_etag())
    assert len(set(etags)) == 4


def test_a_page_in_another_state_is_not_sent(api: httpx.Client, book: dict[str, Any]) -> None:
    response = api.get(LIST_URL, headers={"If-Match": STALE})
    assert parse_error(response) == (412, "PRECONDITION_FAILED", [])


def test_all_problems_of_a_query_are_listed_together(api: httpx.Client) -> None:
    query = {
        "sort": "title", "limit": "0", "count": "yes", "cursor": "garbage", "fields": "tittle", "available": "1",
        "year_min": "1.5", "year_max": "", "title": "t" * 501, "author": "\0", "genre": "g" * 501, "isbn": "i" * 501,
        "q": "w " * 21,
    }  # fmt: skip
    response = api.get(LIST_URL, params=query, headers={"X-Request-ID": "all-at-once"})
    assert response.status_code == 422
    error = response.json()["error"]
    assert {**error, "details": sorted(error["details"], key=lambda detail: list(query).index(detail["field"]))} == {
        "code": "VALIDATION_ERROR",
        "message": "The request is not valid",
        "details": [
            {"field": "limit", "message": "Input should be greater than or equal to 1."},
            {"field": "count", "message": "Input should be true or false."},
            {"field": "cursor", "message": "It is no cursor of a list in this order."},
            {"field": "fields", "message": '"tittle": It is not known here; the nearest name is title.'},
            {"field": "available", "message": "Input should be true or false."},
            {"field": "year_min", "message": "Input should be a valid integer."},
            {"field": "year_max", "message": "Input should be a valid integer."},
            {"field": "title", "message": "Ensure this value has at most 500 characters (it has 501)."},
            {"field": "author", "message": "Null characters are not allowed."},
            {"field": "genre", "message": "Ensure this value has at most 500 characters (it has 501)."},
            {"field": "isbn", "message": "Ensure this value has at most 500 characters (it has 501)."},
            {"field": "q", "message": "Ensure that there are no more than 20 words."},
        ],
        "requestId": "all-at-once",
    }


NO_INTEGERS = ["", "abc", "1.0", "1e2", "%2B1", "+1", "%201", "1%20", "0x1", "1_0", "%00", "%D9%A1", "null", "-", "%FF"]


@pytest.mark.parametrize("name", ["limit", "year_min", "year_max"])
@pytest.mark.parametrize("text", NO_INTEGERS)
def test_a_value_that_is_no_integer_is_refused(api: httpx.Client, name: str, text: str) -> None:
    assert parse_error(api.get(f"{LIST_URL}?{name}={text}")) == build_validation_error(name)


@pytest.mark.parametrize("text", ["0", "-1", "501", str(-(10**30)), str(10**30), "9" * 5_000, "5&limit=501"])
def test_a_limit_out_of_bounds_is_refused(api: httpx.Client, text: str) -> None:
    assert parse_error(api.get(f"{LIST_URL}?limit={text}")) == build_validation_error("limit")


@pytest.mark.parametrize("name", ["available", "count"])
@pytest.mark.parametrize(
    "text", ["", "1", "0", "True", "FALSE", "yes", "null", "%20true", "true%20", "%00", "true,false"]
)
def test_a_value_other_than_true_or_false_is_refused(api: httpx.Client, name: str, text: str) -> None:
    assert parse_error(api.get(f"{LIST_URL}?{name}={text}")) == build_validation_error(name)


@pytest.mark.parametrize(
    "text",
    ["", "-", "--id", "+id", "%2Bid", "ID", "Title", "%20id", "id%20", "id,title", "isbn", "genre", "updated_at", "pk",
     "title_folded", "%00", "id%00", "-%FF", "?", "x" * 5_000, "id&sort=isbn"],
)  # fmt: skip
def test_an_unknown_order_is_refused(api: httpx.Client, text: str) -> None:
    assert parse_error(api.get(f"{LIST_URL}?sort={text}")) == build_validation_error("sort")


@pytest.mark.parametrize("name", ["title", "author", "genre", "isbn", "q"])
@pytest.mark.parametrize("text", ["%00", "a%00", "%00a", "a" * 501, "%F0%90%90%A8" * 501, "a&{name}=%00"])
def test_a_text_that_no_book_could_have_is_refused(api: httpx.Client, name: str, text: str) -> None:
    assert parse_error(api.get(f"{LIST_URL}?{name}={text.format(name=name)}")) == build_validation_error(name)


@pytest.mark.parametrize("name", ["title", "author", "genre", "isbn", "q"])
@pytest.mark.parametrize("character", ["a", "ΐ", "𐐨", "%", "\\", "'"])
def test_a_text_may_have_500_characters(api: httpx.Client, book: dict[str, Any], name: str, character: str) -> None:
    response = api.get(LIST_URL, params={name: character * 500})
    assert (response.status_code, response.json()["results"]) == (200, [])


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("autor", "author"),
        ("titel", "title"),
        ("Title", "title"),
        ("year_mim", "year_min"),
        ("availible", "available"),
        ("curser", "cursor"),
        ("limits", "limit"),
        ("field", "fields"),
        ("isbn13", "isbn"),
    ],
)
def test_an_unknown_parameter_is_answered_with_the_nearest(api: httpx.Client, name: str, nearest: str) -> None:
    response = api.get(f"{LIST_URL}?limit=5&{name}=1")
    assert parse_error(response) == (400, "UNKNOWN_PARAMETER", [name])
    assert response.json()["error"]["details"][0]["message"].endswith(f" {nearest}.")


@pytest.mark.parametrize("query", ["skip=1", "dry_run=true", "format=json", "=1", "%00=1", "%FF=1", "x" * 5_000])
def test_only_known_parameters_may_be_sent(api: httpx.Client, query: str) -> None:
    status, code, fields = parse_error(api.get(f"{LIST_URL}?{query}"))
    assert (status, code, len(fields)) == (400, "UNKNOWN_PARAMETER", 1)


def test_any_number_of_unknown_parameters_is_refused(api: httpx.Client) -> None:
    response = api.get(f"{LIST_URL}?" + "&".join(f"p{number}" for number in range(5_000)))
    assert parse_error(response)[:2] == (400, "UNKNOWN_PARAMETER")


def test_empty_pairs_are_no_parameters(api: httpx.Client, book: dict[str, Any]) -> None:
    assert list_ids(api.get(f"{LIST_URL}?&&limit=5&")) == [book["id"]]


def test_in_an_order_that_is_not_known_no_cursor_is_judged(api: httpx.Client) -> None:
    assert parse_error(api.get(f"{LIST_URL}?sort=shelf&cursor=none")) == build_validation_error("sort")


@pytest.mark.parametrize("cursor_order", SORT_ORDERS)
def test_a_cursor_is_for_its_own_order(api: httpx.Client, book: dict[str, Any], cursor_order: str) -> None:
    api.post(LIST_URL, json=build_book())
    query = httpx.URL(api.get(f"{LIST_URL}?limit=1&sort={cursor_order}").json()["next"]).params
    orders = {
        order: api.get(LIST_URL, params={"sort": order, "cursor": query["cursor"]}).status_code for order in SORT_ORDERS
    }
    assert orders == {order: 200 if order == cursor_order else 422 for order in SORT_ORDERS}


INSTANT = "2026-01-31T09:30:00.000000"


@pytest.mark.parametrize(
    ("sort", "text"),
    [
        pytest.param("id", "", id="nothing"),
        pytest.param("id", "garbage", id="a word"),
        pytest.param("id", "!!!!", id="no base64"),
        pytest.param("id", "\0", id="NUL"),
        pytest.param("id", "A" * 50_000, id="very long"),
        pytest.param("id", forge_cursor("id"), id="a string"),
        pytest.param("id", forge_cursor({}), id="an object"),
        pytest.param("id", forge_cursor(["id", False, 1]), id="too few"),
        pytest.param("id", forge_cursor(["id", False, 1, 1, 1]), id="too many"),
        pytest.param("id", forge_cursor([None, False, 1, 1]), id="no order"),
        pytest.param("id", forge_cursor(["id", 0, 1, 1]), id="no direction"),
        pytest.param("id", forge_cursor(["id", False, "1", 1]), id="text for an id"),
        pytest.param("id", forge_cursor(["id", False, 1, True]), id="true for an id"),
        pytest.param("id", forge_cursor(["id", False, 1, 1.5]), id="a fraction for an id"),
        pytest.param("id", forge_cursor(["id", False, 1, 2**63]), id="an id over 64 bits"),
        pytest.param("id", forge_cursor(["id", False, 1, -(2**63)]), id="the least id of 64 bits"),
        pytest.param("id", forge_cursor(b'["id",false,1,1e400]'), id="an infinite id"),
        pytest.param("id", forge_cursor(b"[" * 1_400), id="deep arrays"),
        pytest.param("year", forge_cursor(["year", False, "1813", 1]), id="text for a year"),
        pytest.param("year", forge_cursor(["year", False, True, 1]), id="true for a year"),
        pytest.param("year", forge_cursor(["year", False, 2**63, 1]), id="a year over 64 bits"),
        pytest.param("title", forge_cursor(["title", False, 1, 1]), id="an integer for a title"),
        pytest.param("title", forge_cursor(["title", False, "a\0", 1]), id="NUL in a title"),
        pytest.param("title", forge_cursor(["title", False, "\ud800", 1]), id="lone surrogate in a title"),
        pytest.param("author", forge_cursor(b'["author",false,"\xff",1]'), id="an author that is no UTF-8"),
        pytest.param("title", forge_cursor(["title", False, "a" * 3_000, 1]), id="a very long title"),
        pytest.param("created_at", forge_cursor(["created_at", False, 1, 1]), id="an integer for a time"),
        pytest.param("created_at", forge_cursor(["created_at", False, "now", 1]), id="a word for a time"),
        pytest.param(
            "created_at", forge_cursor(["created_at", False, "2026-02-30T00:00:00.000000", 1]), id="no such day"
        ),
        pytest.param(
            "created_at", forge_cursor(["created_at", False, "0000-01-01T00:00:00.000000", 1]), id="the year 0"
        ),
        pytest.param("created_at", forge_cursor(["created_at", False, f"{INSTANT}\0", 1]), id="NUL in a time"),
        pytest.param(
            "created_at", forge_cursor(["created_at", False, "0001-01-01T00:00+23:59", 1]), id="before all time"
        ),
        pytest.param(
            "created_at", forge_cursor(["created_at", False, "9999-12-31T23:59-23:59", 1]), id="after all time"
        ),
    ],
)  # fmt: skip
def test_an_invalid_cursor_is_refused(api: httpx.Client, book: dict[str, Any], sort: str, text: str) -> None:
    assert parse_error(api.get(LIST_URL, params={"sort": sort, "cursor": text})) == build_validation_error("cursor")


@pytest.mark.parametrize("order", SORT_ORDERS)
@pytest.mark.parametrize("backward", [False, True])
def test_a_cursor_beyond_all_books_is_valid(
    api: httpx.Client, book: dict[str, Any], order: str, backward: bool
) -> None:
    name = order.removeprefix("-")
    keys = {"title": "", "author": "\U0010ffff" * 100, "created_at": "9999-12-31T23:59:59.999999"}
    for number in (0, -1, 2**31, -(2**31) - 1, 2**62, -(2**62), 2**63 - 2, -(2**63) + 2):
        cursor = forge_cursor([order, backward, keys.get(name, number), number])
        response = api.get(LIST_URL, params={"sort": order, "cursor": cursor, "count": "true"})
        assert (response.status_code, response.json()["count"]) == (200, 1), number
        assert list_ids(response) in ([], [book["id"]]), number


@hypothesis_settings
@given(order=st.sampled_from(SORT_ORDERS), backward=st.booleans() | any_json, key=any_json, pk=st.integers() | any_json)
def test_any_cursor_may_be_sent(
    api: httpx.Client, book: dict[str, Any], order: str, backward: object, key: object, pk: object
) -> None:
    response = api.get(LIST_URL, params={"sort": order, "cursor": forge_cursor([order, backward, key, pk])})
    assert response.status_code in (200, 422)


times = st.datetimes().map(datetime.isoformat) | st.datetimes(timezones=st.timezones()).map(datetime.isoformat)


@hypothesis_settings
@given(key=times, pk=st.integers(-(2**70), 2**70))
def test_any_time_may_be_in_a_cursor(api: httpx.Client, book: dict[str, Any], key: str, pk: int) -> None:
    response = api.get(LIST_URL, params={"sort": "created_at", "cursor": forge_cursor(["created_at", False, key, pk])})
    assert response.status_code in (200, 422)
