"""Books that are probably wrong: without a valid ISBN or a genre, or with an improbable year. All are allowed.

Forms, the scan box and files explain a wrong value by the same messages.
"""

from datetime import date

from django.db.models import Q, Value
from django.db.models.functions import Trim
from django.db.models.lookups import Exact, LessThan
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from books.book.isbn import is_placeholder, normalize_isbn
from books.models import sort_expression
from books.search.scans import ScanKind, read_scan

# The first printed books are from about 1450; some libraries have older ones.
MIN_PROBABLE_YEAR, FIRST_PRINTED_YEAR = 1400, 1450
NO_GENRE = "no_genre"
QUALITIES = {"no_isbn": _("no valid ISBN"), "year": _("improbable year"), NO_GENRE: _("no genre")}

# Codes that are not ISBNs.
EXPLANATIONS = {
    ScanKind.MISREAD: _("In this ISBN a digit is wrong, missing or too many."),
    ScanKind.PERIODICAL: _("This is the code of a periodical (it begins with 977), not of a book."),
    ScanKind.MUSIC: _("This is the code of printed music (it begins with 979-0), not of a book."),
}
PLACEHOLDER = _("This number stands where no ISBN is known.")
IMPROBABLE_YEAR = _("This year is improbable for a book.")
OTHER_CALENDAR = _("This may be a year of another calendar: few books are older than 1450.")


def build_quality_condition(name: str, today: date) -> Q:
    """Returns the condition of one of QUALITIES. An index can find the books of each."""
    if name == "year":
        return Q(year__lt=MIN_PROBABLE_YEAR) | Q(year__gt=today.year + 1)
    return is_blank_genre() if name == NO_GENRE else Q(isbn13=None)


def is_probable_year(year: int, today: date) -> bool:
    """Publishers announce books for the next year."""
    return MIN_PROBABLE_YEAR <= year <= today.year + 1


def is_blank_genre() -> Q:
    """Blank texts sort before all others, so the first condition uses the index."""
    return Q(LessThan(sort_expression("genre"), Value("!")), Exact(Trim("genre_folded"), Value("")))


def warn_isbn(isbn: str) -> str:
    """Returns why it is probably not the ISBN of a book; empty if it is one."""
    if is_placeholder(isbn):
        return str(PLACEHOLDER)
    if normalize_isbn(isbn):
        return ""
    return str(EXPLANATIONS.get(read_scan(isbn).kind) or gettext("This is no valid ISBN."))


def warn_year(year: int, today: date) -> str:
    """Returns why the year is improbable; empty if it is probable."""
    if is_probable_year(year, today):
        # The years since 1980 of the Islamic calendars.
        return str(OTHER_CALENDAR) if year < FIRST_PRINTED_YEAR else ""
    return str(IMPROBABLE_YEAR)
