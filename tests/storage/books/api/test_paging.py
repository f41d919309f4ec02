"""The pages of GET /api/v2/books: every book once, in order, whatever changes between two requests."""

import unicodedata
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from books.writing import changes
from tests.support.books import ACTOR, EMPTY_SAMPLE, build_book
from tests.support.history import explain
from tests.support.pages import LIST_URL, SORT_ORDERS, sort_books, walk_pages
from tests.support.strategies import hypothesis_settings

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
genre_numbers = count(1)


@pytest.fixture
def shelf(api: httpx.Client) -> list[dict[str, Any]]:
    """Books of which many share a title, an author, a year or a time, as version 2 shows them."""
    values = [
        build_book(title=text, author=TEXTS[(position * 7) % len(TEXTS)][:500], year=YEARS[position % len(YEARS)])
        for position, text in enumerate(TEXTS)
    ]
    for start, now in enumerate(INSTANTS):
        changes.create_books(values[start :: len(INSTANTS)], ACTOR, now)
    api.post("/api/books", json=build_book(title="", author="", genre=""))
    books: list[dict[str, Any]] = api.get(f"{LIST_URL}?limit=500").json()["results"]
    return books


def test_pages_hold_every_book_once_in_order_and_take_one_query_each(
    api: httpx.Client, shelf: list[dict[str, Any]], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    limit = 9
    for order in SORT_ORDERS:
        expected = sort_books(shelf, order)
        parts = [expected[start : start + limit] for start in range(0, len(expected), limit)]
        with django_assert_num_queries(2 * len(parts)):
            pages = list(walk_pages(api, f"{LIST_URL}?sort={order}&limit={limit}"))
            pages_back = list(walk_pages(api, pages[-1]["previous"], "previous"))
            last_page = api.get(pages_back[0]["next"]).json()
        assert (order, [page["results"] for page in pages]) == (order, parts)
        assert (order, [page["results"] for page in [last_page, *pages_back]]) == (order, parts[::-1])


letters = st.sampled_from([*"aAbß s%_'é\u0301\u0130ıΣςΐ", "\u0345", "ﬁ", "\uffff", "𐐀", "𐐨", "\U0010ffff", LONG[:99]])
texts = st.lists(letters, max_size=5).map("".join) | st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1))
rows = st.tuples(texts, texts, st.sampled_from(YEARS) | st.integers(-(2**31), 2**31 - 1), st.sampled_from(INSTANTS))


@hypothesis_settings
@given(books=st.lists(rows, max_size=12), order=st.sampled_from(SORT_ORDERS), limit=st.integers(1, 5))
def test_any_books_are_paged_in_order(api: httpx.Client, books: list[Any], order: str, limit: int) -> None:
    genre = f"shelf {next(genre_numbers)}."
    for title, author, year, now in books:
        changes.create_books([build_book(title=title, author=author[:500], year=year, genre=genre)], ACTOR, now)
    query = httpx.QueryParams({"genre": genre, "sort": order, "limit": limit})
    stored = api.get(LIST_URL, params={"genre": genre, "limit": 500}).json()["results"]
    pages = list(walk_pages(api, f"{LIST_URL}?{query}"))
    assert [book for page in pages for book in page["results"]] == sort_books(stored, order)
    assert [len(page["results"]) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    pages_back = list(walk_pages(api, pages[-1]["previous"], "previous")) if len(pages) > 1 else []
    assert [page["results"] for page in pages_back] == [page["results"] for page in reversed(pages[:-1])]


@pytest.fixture
def ids_by_letter(api: httpx.Client) -> dict[str, int]:
    """The ids of twelve books by their titles; author and year sort as the title."""
    return {
        letter: api.post(LIST_URL, json=build_book(title=letter, author=letter, year=ord(letter))).json()["id"]
        for letter in "BDFHJLACEGIK"
    }


@pytest.mark.parametrize("order", ["title", "-year"])
def test_a_book_that_stays_is_listed_once_whatever_else_changes(
    api: httpx.Client, ids_by_letter: dict[str, int], order: str
) -> None:
    address: str | None = f"{LIST_URL}?sort={order}&limit=2"
    books: list[dict[str, Any]] = []
    added_ids: list[int] = []
    while address:
        page = api.get(address).json()
        books += page["results"]
        last = page["results"][-1]
        # Delete the last book of the page, where the next page begins, and add others directly before and after it.
        api.delete(f"{LIST_URL}/{last['id']}")
        for title, year in ((last["title"] * 2, last["year"]), (last["title"].lower(), last["year"])):
            if len(added_ids) < 8:
                added_ids.append(api.post(LIST_URL, json=build_book(title=title, author=title, year=year)).json()["id"])
        address = page["next"]
    titles = [book["title"] for book in books if book["id"] not in added_ids]
    assert titles == sorted("ABCDEFGHIJKL", reverse=order.startswith("-"))
    assert len({book["id"] for book in books}) == len(books)


PLAIN_LISTS = ["v2/books?", "v2/books?sort=-title&fields=id,title", "books?", "books?skip=1"]
# The searches of each.
SEARCHES = {"v2/books?q=jane+novel&year_min=0": 1, "books?author=austen&genre=novel": 2}


def test_a_page_of_any_length_takes_the_same_number_of_queries(
    api: httpx.Client, django_assert_num_queries: DjangoAssertNumQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite, a query for each search first checks whether few books match."""
    monkeypatch.setattr("books.search.texts._sample", EMPTY_SAMPLE)
    for number in (0, 20):
        changes.create_books([build_book() for _ in range(number)], ACTOR, now=NOON)
        for query, searches in {**dict.fromkeys(PLAIN_LISTS, 0), **SEARCHES}.items():
            with django_assert_num_queries(1 + (searches if connection.vendor == "sqlite" else 0)):
                books = api.get(f"/api/{query}&limit=500").json()
            assert len(books if isinstance(books, list) else books["results"]) == max(number - ("skip" in query), 0)


# The words in a plan for an index search, and for a sort.
SEARCH_MARKS = {"sqlite": "SEARCH", "postgresql": "Index Cond"}
SORT_MARKS = {"sqlite": "TEMP B-TREE", "postgresql": "Sort"}


def explain_page(api: httpx.Client, address: str) -> str:
    """The plan of the database for this page, as for a library that is too large for a full scan."""
    with CaptureQueriesContext(connection) as queries:
        api.get(address)
    return explain(queries[0]["sql"], "seqscan", "sort", "bitmapscan")


def test_every_page_is_found_through_an_index(api: httpx.Client, shelf: list[dict[str, Any]]) -> None:
    others = []
    for order in SORT_ORDERS:
        second = api.get(api.get(f"{LIST_URL}?sort={order}&limit=10").json()["next"]).json()
        for relation in ("next", "previous"):
            steps = explain_page(api, second[relation])
            if SEARCH_MARKS[connection.vendor] not in steps or SORT_MARKS[connection.vendor] in steps:
                others.append((order, relation, steps))
    assert not others
