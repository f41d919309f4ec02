"""What is doubtful about the values of a book. Forms and files say it in the same words."""

from datetime import date

import pytest

from books.admin.book.warnings import find_warnings
from books.search.quality import warn_isbn, warn_year

TODAY = date(2026, 12, 31)


def test_what_is_no_valid_isbn_is_doubtful() -> None:
    beginnings = {
        "9780141439518": "",
        "0-14-143951-3": "",
        "9780141439519": "In this ISBN a digit is wrong",
        "0141439514": "In this ISBN a digit is wrong",
        "014143951": "This is no valid ISBN.",
        "9771234567003": "This is the code of a periodical",
        "9790260000438": "This is the code of printed music",
        "LOC 17": "This is no valid ISBN.",
    }
    for isbn, beginning in beginnings.items():
        warning = warn_isbn(isbn)
        assert (warning.startswith(beginning), bool(warning)) == (True, bool(beginning)), isbn


def test_a_year_before_printed_books_or_after_the_next_one_is_doubtful() -> None:
    improbable = {
        year: bool(warn_year(year, TODAY)) for year in (-44, 0, 1399, 1402, 1447, 1450, 2027, 2028, 2567, 5784)
    }
    assert [year for year, is_improbable in improbable.items() if not is_improbable] == [1450, 2027]
    assert "another calendar" in warn_year(1447, TODAY)


@pytest.mark.usefixtures("db")
def test_a_form_warns_of_what_was_edited_alone() -> None:
    values = {"isbn": "12345", "year": 1399}
    messages = [warning.message for warning in find_warnings(values, values.keys(), None, TODAY)]
    assert messages == [warn_isbn("12345"), warn_year(1399, TODAY)]
    assert find_warnings(values, ["genre"], None, TODAY) == []
