"""Pages of books whose positions are keys."""

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from books.models import Book
from books.search.sections import POSITION, SORT_KEYS, Section, find_key, parse_position, read_sections
from library_site.db.keyset import Key, Page, Start
from tests.support.books_admin import create_book

pytestmark = pytest.mark.usefixtures("db")

# Sections of three books each.
HALVES = [Section(Q(year__lt=1900), "title"), Section(Q(year__gte=1900), "-id")]


@pytest.fixture(autouse=True)
def books() -> list[Book]:
    fields = [("B", 1800), ("a", 1801), ("A", 1802), ("C", 1900), ("C", 1901), ("D", 1902)]
    return [create_book(title=title, genre=title, author=title, year=year) for title, year in fields]


def list_years(page: Page[Book]) -> list[int]:
    return [book.year for book in page.rows]


def read(sections: list[Section], key: Key | None = None, backward: bool = False, limit: int = 2) -> Page[Book]:
    return read_sections(Book.objects.all(), sections, limit, Start(key, backward))


def find_position(key: Key, sections: list[Section]) -> Key | None:
    return parse_position(POSITION.encode(key), sections)


@pytest.mark.parametrize("limit", [1, 2, 4, 6])
def test_pages_go_through_all_sections_and_back(limit: int) -> None:
    page, years = read(HALVES, limit=limit), []
    pages = [page]
    while page.next_key:
        page = read(HALVES, find_position(page.next_key, HALVES), limit=limit)
        pages.append(page)
    years = [year for page in pages for year in list_years(page)]
    assert years == [1801, 1802, 1800, 1902, 1901, 1900]
    for earlier_page in pages[-2::-1]:
        assert page.previous_key
        page = read(HALVES, find_position(page.previous_key, HALVES), backward=True, limit=limit)
        assert list_years(page) == list_years(earlier_page)
    assert page.previous_key is None


def test_a_page_reads_no_more_sections_than_it_needs() -> None:
    with CaptureQueriesContext(connection) as queries:
        read(HALVES)
    assert len(queries) == 1
    page = read(HALVES, backward=True)
    assert (list_years(page), page.next_key) == ([1901, 1900], None)


def test_an_empty_page_leads_back() -> None:
    for sections in (HALVES, HALVES[::-1]):
        key, backward_key = (find_key(sections, read(sections, None, way, 1).rows[0].pk) for way in (True, False))
        end, start = read(sections, key), read(sections, backward_key, backward=True)
        assert (len(end.rows), len(start.rows)) == (0, 0)
        assert len(read(sections, end.previous_key, backward=True, limit=6).rows) == 6
        assert len(read(sections, start.next_key, limit=6).rows) == 6


def test_each_order_goes_on_behind_a_position() -> None:
    for sort in [sign + name for name in SORT_KEYS for sign in ("", "-")]:
        sections = [Section(Q(), sort)]
        all_years, first = list_years(read(sections, limit=6)), read(sections, limit=3)
        assert first.next_key, sort
        second = read(sections, find_position(first.next_key, sections), limit=3)
        assert (list_years(first) + list_years(second), second.next_key) == (all_years, None), sort
        assert len(set(all_years)) == 6, sort


def test_only_positions_of_a_list_are_read() -> None:
    by_time = [Section(Q(), "created_at")]
    foreign = [
        ((2, "A", 1), HALVES),
        # Python counts -1 from the end, and the key would fit there.
        ((-1, 17, 1), HALVES),
        ((0, 17, 1), HALVES),
        ((1, "A", 1), HALVES),
        ((0, "\0", 1), HALVES),
        ((0, "A", 2**63), HALVES),
        ((1, 2**63, 1), HALVES),
        # Before the first year in UTC.
        ((0, "0001-01-01T00:00:00.000000+23:59", 1), by_time),
        ((0, "2026-01-31", 1), by_time),
        ((0, "2026-01-31T09:30:00.000000Z", 1), by_time),
    ]
    texts = [*((POSITION.encode(position), sections) for position, sections in foreign)]
    texts += [(text, by_time) for text in ("", "x", "W10", "é", "A" * 5_000)]
    assert [text for text, sections in texts if parse_position(text, sections) is not None] == []
    by_year = [Section(Q(), "year")]
    for number, count in ((2**63 - 2, 0), (2 - 2**63, 6)):
        start = parse_position(POSITION.encode([0, number, number]), by_year)
        assert start
        assert len(list_years(read(by_year, start, limit=6))) == count
