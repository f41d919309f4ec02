"""Which books are probably wrong: without a valid ISBN, with an improbable year, or there twice. None is forbidden."""

from datetime import date

from django.db.models import Count, Exists, OuterRef, Q
from django.db.models.lookups import Exact
from django.utils.translation import gettext_lazy as _

from books.models import Book, SortPrefix, sort_expression
from books.search.matches import compare_rows

# The first books were printed with movable type in the middle of the century; some libraries have older ones.
MIN_PROBABLE_YEAR = 1400
HAS_NO_ISBN = Q(isbn13=None)
# The label below names it.
NEWEST_BOOKS = 500
DUPLICATES = "duplicates"
QUALITIES = {
    "no_isbn": _("no valid ISBN"),
    "year": _("improbable year"),
    DUPLICATES: _("possible duplicates among the newest 500"),
    "same_isbn": _("same ISBN as another book"),
}
# Those that are found along an index.
COUNTED_QUALITIES = ("no_isbn", "year", DUPLICATES)


def build_quality_condition(name: str, today: date, newest_from: int) -> Q:
    """The condition of one of QUALITIES. Duplicates are looked for from the id of `find_first_of_newest` on."""
    if name == DUPLICATES:
        return Q(pk__gte=newest_from) & is_possible_duplicate()
    if name == "year":
        return has_improbable_year(today)
    return shares_isbn() if name == "same_isbn" else HAS_NO_ISBN


def is_probable_year(year: int, today: date) -> bool:
    """Books are announced for the next year."""
    return MIN_PROBABLE_YEAR <= year <= today.year + 1


def has_improbable_year(today: date) -> Q:
    return Q(year__lt=MIN_PROBABLE_YEAR) | Q(year__gt=today.year + 1)


def shares_isbn() -> Q:
    """Whether another book has the same ISBN, in any writing. It reads the ISBNs of all books."""
    shared = Book.objects.exclude(isbn13=None).values("isbn13").annotate(books=Count("*")).filter(books__gt=1)
    return Q(isbn13__in=shared.values("isbn13"))


def find_first_of_newest() -> int | None:
    """Returns the id of the first of the newest books, None if there are no others.

    All books would take seconds to look at; most duplicates are found soon after they are added.
    """
    return Book.objects.order_by("-pk").values_list("pk", flat=True)[NEWEST_BOOKS - 1 :].first()


def is_possible_duplicate() -> Q:
    """Whether another book has the same ISBN, or the same title and author."""
    others = Book.objects.exclude(pk=OuterRef("pk"))
    # The prefix is for the index.
    same_prefix = Exact(sort_expression("title"), SortPrefix(OuterRef("title_folded")))
    members = [Exact(compare_rows(column), OuterRef(column)) for column in ("title_folded", "author_folded")]
    same_title = Q(same_prefix, *members)
    return Q(Exists(others.filter(isbn13=OuterRef("isbn13")))) | Q(Exists(others.filter(same_title)))
