"""The pages of GET /api/v2/books: every book once, in order, whatever happens between them."""

import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from books import changes
from tests.support.books import new_book
from tests.support.pages import LIST, ORDERS, ids, in_order, walk
from tests.support.strategies import thorough

LONG = "In a hole in the ground there lived a hobbit. Not a nasty, dirty, wet hole, filled with the ends of w"
TEXTS = [
    "", " ", "  ", "a", "A", "b", "B", "Z", "z", "aa", "a a", "a-a", "a_a", "a%a", "a\\a", "\t",
    "\n", "\x01", "~", "\x7f", "0", "10", "9", "é", "e\u0301", "É", "E", "e", "f", "ß", "ss", "SS",
    "ẞ", "st", "ﬆ", "İ", "i̇", "ı", "I", "Σ", "ς", "σ", "ж", "Ж", "春", "村", "\ufffd", "\uffff",
    "\ue000", "𐐀", "𐐨", "🐘", "\U0010ffff", "'", '"', "\u00a0", "\u200b", "\u0301", "ǆ", "ΐ", LONG,
    LONG, LONG[:99], LONG[:100], LONG[:100] + "a", LONG[:100] + "Z", LONG.upper(), "ß" * 60,
    "ß" * 50 + "a", "s" * 100, "ΐ" * 40, "𐐀" * 100, "𐐀" * 99 + "𐐁", "𐐀" * 100 + "x", "é" * 100,
    unicodedata.normalize("NFD", "é" * 100), "\x01" * 100, "\U0010ffff" * 500,
]  # fmt: skip
YEARS = [0, 1813, 1813, -44, 2**31 - 1, -(2**31), 1813, 7, 7]
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
# One instant for many books, others a microsecond or a second apart.
INSTANTS = [NOON, NOON + timedelta(microseconds=1), NOON, NOON + timedelta(seconds=1), NOON - timedelta(days=40_000)]
shelves = count(1)


@pytest.fixture
def shelf(api: httpx.Client) -> list[dict[str, Any]]:
    """Books of which many share a title, an author, a year or a time, as version 2 shows them."""
    values = [
        new_book(title=text, author=TEXTS[(place * 7) % len(TEXTS)][:500], year=YEARS[place % len(YEARS)])
        for place, text in enumerate(TEXTS)
    ]
    for start, now in enumerate(INSTANTS):
        changes.add_books(values[start :: len(INSTANTS)], now)
    api.post("/api/books", json=new_book(title="", author="", genre=""))
    books: list[dict[str, Any]] = api.get(f"{LIST}?limit=500").json()["results"]
    return books


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limit", [2, 40])
def test_pages_hold_every_book_once_in_order(
    api: httpx.Client, shelf: list[dict[str, Any]], order: str, limit: int
) -> None:
    pages = list(walk(api, f"{LIST}?sort={order}&limit={limit}"))
    expected = in_order(shelf, order)
    assert [page["results"] for page in pages] == [expected[at : at + limit] for at in range(0, len(expected), limit)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limit", [2, 40])
def test_the_way_back_is_the_way_there(api: httpx.Client, shelf: list[dict[str, Any]], order: str, limit: int) -> None:
    there = list(walk(api, f"{LIST}?sort={order}&limit={limit}"))
    back = list(walk(api, there[-1]["previous"], "previous"))
    assert [page["results"] for page in back] == [page["results"] for page in reversed(there[:-1])]


@pytest.mark.parametrize("order", ORDERS)
def test_from_any_page_back_the_next_is_the_same(api: httpx.Client, shelf: list[dict[str, Any]], order: str) -> None:
    for page in list(walk(api, f"{LIST}?sort={order}&limit=9"))[1:]:
        before = api.get(page["previous"]).json()
        assert api.get(before["next"]).json()["results"] == page["results"]


letters = st.sampled_from([*"aAbß s%_'é\u0301\u0130ıΣςΐ", "\u0345", "ﬁ", "\uffff", "𐐀", "𐐨", "\U0010ffff", LONG[:99]])
texts = st.lists(letters, max_size=5).map("".join) | st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1))
rows = st.tuples(texts, texts, st.sampled_from(YEARS) | st.integers(-(2**31), 2**31 - 1), st.sampled_from(INSTANTS))


@thorough
@given(books=st.lists(rows, max_size=12), order=st.sampled_from(ORDERS), limit=st.integers(1, 5))
def test_any_books_are_paged_in_order(api: httpx.Client, books: list[Any], order: str, limit: int) -> None:
    genre = f"shelf {next(shelves)}."
    for title, author, year, now in books:
        changes.add_books([new_book(title=title, author=author[:500], year=year, genre=genre)], now)
    query = httpx.QueryParams({"genre": genre, "sort": order, "limit": limit})
    stored = api.get(LIST, params={"genre": genre, "limit": 500}).json()["results"]
    pages = list(walk(api, f"{LIST}?{query}"))
    assert [book for page in pages for book in page["results"]] == in_order(stored, order)
    assert [len(page["results"]) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    back = list(walk(api, pages[-1]["previous"], "previous")) if len(pages) > 1 else []
    assert [page["results"] for page in back] == [page["results"] for page in reversed(pages[:-1])]


@pytest.fixture
def letters_a_to_l(api: httpx.Client) -> dict[str, int]:
    """Twelve books' ids by their titles, each author and year following the title."""
    return {
        letter: api.post(LIST, json=new_book(title=letter, author=letter, year=ord(letter))).json()["id"]
        for letter in "BDFHJLACEGIK"
    }


@pytest.mark.parametrize("order", ["title", "-title", "author", "year", "-year"])
def test_books_that_stay_are_met_once_whatever_comes_and_goes(
    api: httpx.Client, letters_a_to_l: dict[str, int], order: str
) -> None:
    address: str | None = f"{LIST}?sort={order}&limit=2"
    met: list[dict[str, Any]] = []
    come: list[int] = []
    while address:
        page = api.get(address).json()
        met += page["results"]
        last = page["results"][-1]
        # The book that the next page begins behind leaves, and others come just before it and just after it.
        api.delete(f"{LIST}/{last['id']}")
        for title, year in ((last["title"] * 2, last["year"]), (last["title"].lower(), last["year"])):
            if len(come) < 8:
                come.append(api.post(LIST, json=new_book(title=title, author=title, year=year)).json()["id"])
        address = page["next"]
    stayed = [book["title"] for book in met if book["id"] not in come]
    assert stayed == sorted("ABCDEFGHIJKL", reverse=order.startswith("-"))
    assert len({book["id"] for book in met}) == len(met)


@pytest.mark.parametrize("order", ORDERS)
def test_a_book_that_comes_at_the_end_is_met(api: httpx.Client, letters_a_to_l: dict[str, int], order: str) -> None:
    first = api.get(f"{LIST}?sort={order}&limit=10").json()
    late = api.post(LIST, json=new_book(title="M", author="M", year=ord("M"))).json()
    met = [*ids_of(first), *(book for page in walk(api, first["next"]) for book in ids_of(page))]
    assert (late["id"] in met) == (not order.startswith("-"))
    assert sorted(set(met) - {late["id"]}) == sorted(letters_a_to_l.values())


def ids_of(page: dict[str, Any]) -> list[int]:
    return [book["id"] for book in page["results"]]


def remove_all(api: httpx.Client, books: list[int]) -> None:
    for book in books:
        api.delete(f"{LIST}/{book}")


@pytest.mark.parametrize("order", ORDERS)
def test_an_empty_page_at_the_end_leads_back(api: httpx.Client, letters_a_to_l: dict[str, int], order: str) -> None:
    first = api.get(f"{LIST}?sort={order}&limit=5").json()
    second = api.get(first["next"]).json()
    third = api.get(second["next"]).json()
    remove_all(api, ids_of(third))
    empty = api.get(second["next"]).json()
    back = api.get(empty["previous"]).json()
    assert (empty["results"], empty["next"]) == ([], None)
    assert back["results"] == second["results"]
    assert api.get(back["previous"]).json()["results"] == first["results"]


@pytest.mark.parametrize("order", ORDERS)
def test_an_empty_page_at_the_beginning_leads_on(api: httpx.Client, letters_a_to_l: dict[str, int], order: str) -> None:
    first = api.get(f"{LIST}?sort={order}&limit=5").json()
    second = api.get(first["next"]).json()
    remove_all(api, ids_of(first))
    empty = api.get(second["previous"]).json()
    on = api.get(empty["next"]).json()
    assert (empty["results"], empty["previous"]) == ([], None)
    assert on["results"] == second["results"]


@pytest.mark.parametrize("order", ORDERS)
def test_a_library_that_was_emptied_is_walked_to_its_end(
    api: httpx.Client, letters_a_to_l: dict[str, int], order: str
) -> None:
    second = api.get(api.get(f"{LIST}?sort={order}&limit=5").json()["next"]).json()
    remove_all(api, list(letters_a_to_l.values()))
    for address, relation in ((second["next"], "next"), (second["previous"], "previous")):
        page = api.get(address).json()
        assert (page["results"], page[relation]) == ([], None)


def test_a_place_outlives_a_change_of_its_book(api: httpx.Client, letters_a_to_l: dict[str, int]) -> None:
    first = api.get(f"{LIST}?sort=title&limit=4").json()
    api.put(f"/api/books/{letters_a_to_l['D']}", json={"title": "Z"})
    rest = [book["title"] for page in walk(api, first["next"]) for book in page["results"]]
    assert rest == [*"EFGHIJKL", "Z"]


def by_version_1(api: httpx.Client, book: int, members: dict[str, Any]) -> None:
    api.put(f"/api/books/{book}", json=members)


def by_version_2(api: httpx.Client, book: int, members: dict[str, Any]) -> None:
    api.patch(f"{LIST}/{book}", json=members)


@pytest.mark.parametrize("change", [by_version_1, by_version_2])
@pytest.mark.parametrize(
    ("order", "members"), [("title", {"title": "ÄÄ"}), ("author", {"author": "ÄÄ"}), ("year", {"year": 2000})]
)
def test_an_order_follows_a_change(
    api: httpx.Client,
    letters_a_to_l: dict[str, int],
    change: Callable[[httpx.Client, int, dict[str, Any]], None],
    order: str,
    members: dict[str, Any],
) -> None:
    change(api, letters_a_to_l["A"], members)
    assert ids(api.get(f"{LIST}?sort={order}"))[-1] == letters_a_to_l["A"]
    assert ids(api.get(f"{LIST}?sort=-{order}"))[0] == letters_a_to_l["A"]


@pytest.mark.parametrize("number", [0, 1, 100, 500])
@pytest.mark.parametrize(
    ("query", "words"),
    [("", 0), ("&sort=-title", 0), ("&fields=id,title", 0), ("&q=jane+novel&year_min=0", 2), ("&isbn=", 0)],
)
def test_a_page_of_any_length_costs_as_many_queries(
    api: httpx.Client, django_assert_num_queries: DjangoAssertNumQueries, number: int, query: str, words: int
) -> None:
    changes.add_books([new_book() for _ in range(number)], now=NOON)
    # SQLite's index is asked for each word first.
    with django_assert_num_queries(1 + (words if connection.vendor == "sqlite" else 0)):
        answer = api.get(f"{LIST}?limit=500{query}")
    assert len(ids(answer)) == number


@pytest.mark.parametrize("order", ORDERS)
def test_a_page_costs_the_same_however_deep(
    api: httpx.Client, shelf: list[dict[str, Any]], order: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    addresses = [page["next"] for page in walk(api, f"{LIST}?sort={order}&limit=10") if page["next"]]
    for address in addresses:
        with django_assert_num_queries(1):
            page = api.get(address).json()
        with django_assert_num_queries(1):
            api.get(page["previous"])


EXPLAIN = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}
# How a plan says that it goes straight to a place, and that it sorts what it found.
STRAIGHT = {"sqlite": "SEARCH", "postgresql": "Index Cond"}
SORTED = {"sqlite": "TEMP B-TREE", "postgresql": "Sort"}


def plan(api: httpx.Client, address: str) -> str:
    """How the database goes about this page, were the library too large to read whole."""
    statements: list[tuple[str, Any]] = []

    def kept(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        statements.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(kept):
        api.get(address)
    (sql, params), *_ = statements
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off"
            )
        cursor.execute(f"{EXPLAIN[connection.vendor]} {sql}", params)
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("relation", ["next", "previous"])
def test_an_index_leads_to_the_page(api: httpx.Client, shelf: list[dict[str, Any]], order: str, relation: str) -> None:
    second = api.get(api.get(f"{LIST}?sort={order}&limit=10").json()["next"]).json()
    steps = plan(api, second[relation])
    assert STRAIGHT[connection.vendor] in steps
    assert SORTED[connection.vendor] not in steps


def test_a_count_is_one_query_more(
    api: httpx.Client, shelf: list[dict[str, Any]], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(2):
        api.get(f"{LIST}?count=true&q=a&limit=1")


def test_a_refused_question_is_no_query(api: httpx.Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        api.get(f"{LIST}?limit=0&title=a")
        api.get(f"{LIST}?autor=a")
        api.get(f"{LIST}?cursor=garbage&count=true")
