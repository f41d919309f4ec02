"""What the summaries count."""

from datetime import UTC, datetime

import pytest

from books.models import Book
from books.summaries import count_books
from books.writing import changes
from tests.support.books import ACTOR, build_book

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


@pytest.mark.usefixtures("db")
def test_a_decade_has_the_books_of_the_years_by_which_it_is_opened() -> None:
    years = (-(2**31), -11, -10, -1, 0, 9, 10, 1999, 2**31 - 1)
    changes.create_books([build_book(year=year) for year in years], ACTOR, now=NOW)
    decades = count_books(NOW)["decades"]
    assert decades == [
        [decade, Book.objects.filter(year__range=(decade, decade + 9)).count()]
        for decade in sorted({year // 10 * 10 for year in years})
    ]
