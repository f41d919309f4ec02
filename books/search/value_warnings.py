"""Finds probably wrong values of a book, and explains why. Forms, the scan box and files use the same messages."""

from datetime import date

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from books.isbn import normalize_isbn
from books.search.quality import is_probable_year
from books.search.scans import ScanKind, read_scan

# Codes that are not ISBNs.
EXPLANATIONS = {
    ScanKind.MISREAD: _("In this ISBN a digit is wrong, missing or too many."),
    ScanKind.PERIODICAL: _("This is the code of a periodical (it begins with 977), not of a book."),
    ScanKind.MUSIC: _("This is the code of printed music (it begins with 979-0), not of a book."),
}
IMPROBABLE_YEAR = _("This year is improbable for a book.")


def warn_isbn(isbn: str) -> str:
    """Returns why it is not a valid ISBN; empty if it is one."""
    if normalize_isbn(isbn):
        return ""
    return str(EXPLANATIONS.get(read_scan(isbn).kind) or gettext("This is no valid ISBN."))


def warn_year(year: int, today: date) -> str:
    """Returns why the year is improbable; empty if it is probable."""
    return "" if is_probable_year(year, today) else str(IMPROBABLE_YEAR)
