"""Pages of books whose positions are keys."""

from typing import Any

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from books.models import Book
from books.search.sections import SORT_KEYS, Position, Section, parse_position, read_books
from library_site.db.keyset import Key, Page, Start
from tests.support.books_admin import create_book

pytestmark = pytest.mark.usefixtures("db")

# Sections of three books each.
HALVES = [Section(Q(year__lt=1900), "title"), Section(Q(year__gte=1900), "-id")]


@pytest.fixture(autouse=True)
def books() -> list[Book]:
    members = [("B", 1800), ("a", 1801), ("A", 1802), ("C", 1900), ("C", 1901), ("D", 1902)]
    return [create_book(title=title, genre=title, author=title, year=year) for title, year in members]


def list_years(page: Page[Book]) -> list[int]:
    return [book.year for book in page.rows]


def read(sections: list[Section], key: Key | None = None, backward: bool = False, limit: int = 2) -> Page[Book]:
    return read_books(Book.objects.all(), sections, limit, Start(key, backward))


def find_position(key: Key, sections: list[Section]) -> Key | None:
    return parse_position(Position(*key).encode(), sections)


@pytest.mark.parametrize("limit", [1, 2, 4, 6])
def test_pages_go_through_all_sections_and_back(limit: int) -> None:
    page, years = read(HALVES, limit=limit), []
    pages = [page]
    while page.behind:
        page = read(HALVES, find_position(page.behind, HALVES), limit=limit)
        pages.append(page)
    years = [year for page in pages for year in list_years(page)]
    assert years == [1801, 1802, 1800, 1902, 1901, 1900]
    for earlier_page in pages[-2::-1]:
        assert page.before
        page = read(HALVES, find_position(page.before, HALVES), backward=True, limit=limit)
        assert list_years(page) == list_years(earlier_page)
    assert page.before is None


def test_the_last_page_is_read_from_the_end() -> None:
    page = read(HALVES, backward=True)
    assert (list_years(page), page.behind) == ([1901, 1900], None)
    assert page.before


@pytest.mark.parametrize("name", SORT_KEYS)
@pytest.mark.parametrize("sign", ["", "-"])
def test_each_order_goes_on_behind_a_position(name: str, sign: str) -> None:
    sections = [Section(Q(), sign + name)]
    all_years = list_years(read(sections, limit=6))
    first = read(sections, limit=3)
    assert first.behind
    second = read(sections, find_position(first.behind, sections), limit=3)
    assert (list_years(first) + list_years(second), second.behind) == (all_years, None)
    assert len(set(all_years)) == 6


@pytest.mark.parametrize(
    "position",
    [
        Position(2, "A", 1),
        # Python counts -1 from the end, and the key would fit there.
        Position(-1, 17, 1),
        Position(0, 17, 1),
        Position(1, "A", 1),
        Position(0, "\0", 1),
        Position(0, "A", 2**63),
        Position(1, 2**63, 1),
    ],
)
def test_foreign_positions_are_none(position: Any) -> None:
    assert parse_position(position.encode(), HALVES) is None


@pytest.mark.parametrize("number", [2**63 - 2, 2 - 2**63])
def test_a_position_may_have_the_largest_numbers(number: int) -> None:
    sections = [Section(Q(), "year")]
    start = parse_position(Position(0, number, number).encode(), sections)
    assert start
    assert len(list_years(read(sections, start, limit=6))) == (0 if number > 0 else 6)


@pytest.mark.parametrize("key", ["0001-01-01T00:00:00.000000+23:59", "2026-01-31", "2026-01-31T09:30:00.000000Z"])
def test_times_that_no_position_has_are_none(key: str) -> None:
    """The first is before the first year in UTC."""
    assert parse_position(Position(0, key, 1).encode(), [Section(Q(), "created_at")]) is None


@pytest.mark.parametrize("text", ["", "x", "W10", "é", "A" * 5_000])
def test_texts_that_are_no_positions_are_none(text: str) -> None:
    assert parse_position(text, [Section(Q(), "created_at")]) is None


def test_a_section_that_a_page_does_not_reach_is_not_read() -> None:
    with CaptureQueriesContext(connection) as queries:
        read(HALVES, limit=2)
    assert len(queries) == 1
