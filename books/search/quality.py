"""Books that are probably wrong: without a valid ISBN, with an improbable year, or duplicates. All are allowed."""

from datetime import date

from django.db.models import Count, Exists, OuterRef, Q
from django.db.models.lookups import Exact
from django.utils.translation import gettext_lazy as _

from books.models import Book, SortPrefix, sort_expression
from books.search.matches import compare_rows

# The first printed books are from about 1450; some libraries have older ones.
MIN_PROBABLE_YEAR = 1400
HAS_NO_ISBN = Q(isbn13=None)
# Its label is below.
NEWEST_BOOKS = 500
DUPLICATES = "duplicates"
QUALITIES = {
    "no_isbn": _("no valid ISBN"),
    "year": _("improbable year"),
    DUPLICATES: _("possible duplicates among the newest 500"),
    "same_isbn": _("same ISBN as another book"),
}
# The qualities that an index can find.
COUNTED_QUALITIES = ("no_isbn", "year", DUPLICATES)


def build_quality_condition(name: str, today: date, newest_from: int) -> Q:
    """Returns the condition of one of QUALITIES. `newest_from` is the result of `find_first_of_newest`."""
    if name == DUPLICATES:
        return Q(pk__gte=newest_from) & is_possible_duplicate()
    if name == "year":
        return has_improbable_year(today)
    return shares_isbn() if name == "same_isbn" else HAS_NO_ISBN


def is_probable_year(year: int, today: date) -> bool:
    """Publishers announce books for the next year."""
    return MIN_PROBABLE_YEAR <= year <= today.year + 1


def has_improbable_year(today: date) -> Q:
    return Q(year__lt=MIN_PROBABLE_YEAR) | Q(year__gt=today.year + 1)


def shares_isbn() -> Q:
    """Whether another book has the same ISBN, in any notation. It reads the ISBNs of all books."""
    shared = Book.objects.exclude(isbn13=None).values("isbn13").annotate(books=Count("*")).filter(books__gt=1)
    return Q(isbn13__in=shared.values("isbn13"))


def find_first_of_newest() -> int | None:
    """Returns the id of the first of the newest books, None if there are no older ones.

    Checking all books would take seconds, and most duplicates are found soon after they are added.
    """
    return Book.objects.order_by("-pk").values_list("pk", flat=True)[NEWEST_BOOKS - 1 :].first()


def is_possible_duplicate() -> Q:
    """Whether another book has the same ISBN, or the same title and author."""
    others = Book.objects.exclude(pk=OuterRef("pk"))
    # The prefix uses the index.
    same_prefix = Exact(sort_expression("title"), SortPrefix(OuterRef("title_folded")))
    fields = [Exact(compare_rows(column), OuterRef(column)) for column in ("title_folded", "author_folded")]
    same_title = Q(same_prefix, *fields)
    return Q(Exists(others.filter(isbn13=OuterRef("isbn13")))) | Q(Exists(others.filter(same_title)))
