"""What is doubtful about the values of a book. Forms and files say it in the same words."""

from datetime import date

import pytest
from django.utils import translation

from books.admin.book.warnings import find_warnings
from books.search.quality import warn_isbn, warn_year

TODAY = date(2026, 12, 31)


@pytest.mark.parametrize(
    ("isbn", "beginning"),
    [
        ("9780141439518", ""),
        ("0-14-143951-3", ""),
        ("9780141439519", "In this ISBN a digit is wrong"),
        ("0141439514", "In this ISBN a digit is wrong"),
        ("014143951", "This is no valid ISBN."),
        ("9771234567003", "This is the code of a periodical"),
        ("9790260000438", "This is the code of printed music"),
        ("12345", "This is no valid ISBN."),
        ("#17", "This is no valid ISBN."),
        ("LOC 17", "This is no valid ISBN."),
    ],
)
def test_what_is_no_valid_isbn_is_doubtful(isbn: str, beginning: str) -> None:
    warning = warn_isbn(isbn)
    assert warning.startswith(beginning)
    assert bool(warning) == bool(beginning)


@pytest.mark.parametrize(
    ("year", "is_doubtful"), [(1399, True), (1400, False), (2027, False), (2028, True), (-44, True), (0, True)]
)
def test_a_year_before_printed_books_or_after_the_next_one_is_doubtful(year: int, is_doubtful: bool) -> None:
    assert warn_year(year, TODAY) == ("This year is improbable for a book." if is_doubtful else "")


@pytest.mark.usefixtures("db")
def test_a_form_says_the_same_of_what_was_edited() -> None:
    values = {"isbn": "12345", "year": 1399}
    messages = [warning.message for warning in find_warnings(values, values.keys(), None, TODAY)]
    assert messages == [warn_isbn("12345"), warn_year(1399, TODAY)]
    assert find_warnings(values, ["genre"], None, TODAY) == []


def test_warnings_are_said_in_german() -> None:
    with translation.override("de"):
        assert warn_isbn("12345") == "Das ist keine gültige ISBN."
