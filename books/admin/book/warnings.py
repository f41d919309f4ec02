"""Warnings before a book is saved. The librarian may ignore them."""

from collections.abc import Collection, Mapping
from datetime import date
from hashlib import blake2b
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from books.models import Book
from books.search.duplicates import find_same_isbn, find_same_works
from books.search.value_warnings import warn_isbn, warn_year


class BookWarning(NamedTuple):
    """A warning about the value of a field. A message with links is safe HTML.

    If `needs_yes` is set, showing the warning is not enough: the librarian must accept it.
    """

    member: str
    value: str
    message: str
    needs_yes: bool = False

    @property
    def token(self) -> str:
        """The form sends this token to tell that the page has shown the warning."""
        return blake2b(f"{self.member}\0{self.value}\0{self.message}".encode(), digest_size=8).hexdigest()


def find_warnings(values: Mapping[str, Any], edited: Collection[str], pk: int | None, today: date) -> list[BookWarning]:
    """Returns warnings about the fields that the librarian edited. `pk` is the id of the book, None for a new one.

    `values` leaves out invalid values. Takes at most two queries.
    """
    others = Book.objects.exclude(pk=pk) if pk else Book.objects.all()
    warnings: list[BookWarning | None] = []
    if "isbn" in edited and "isbn" in values:
        warnings += [check_isbn(values["isbn"]), check_same_isbn(values["isbn"], others)]
    if {"title", "author"} & set(edited) and "title" in values and "author" in values:
        warnings.append(check_same_work(values["title"], values["author"], others))
    if "year" in edited and "year" in values:
        warnings.append(check_year(values["year"], today))
    return [warning for warning in warnings if warning]


def check_isbn(isbn: str) -> BookWarning | None:
    message = warn_isbn(isbn)
    return BookWarning("isbn", isbn, message) if message else None


def check_same_isbn(isbn: str, others: QuerySet[Book]) -> BookWarning | None:
    """Finds a book with the same ISBN in another notation. The same notation is an error of the form."""
    other = others.filter(find_same_isbn(isbn)).first()
    message = _("{} has the same ISBN.")
    return BookWarning("isbn", isbn, format_warning(message, other), needs_yes=True) if other else None


def check_same_work(title: str, author: str, others: QuerySet[Book]) -> BookWarning | None:
    """Finds a book that duplicates have in common with this one: the title up to its subtitle, and the author."""
    pks = find_same_works([(title, author)]).get((title, author), [])
    other = others.filter(pk__in=pks).order_by("pk").first()
    message = _("{} has the same title and author. It may be the same book.")
    return BookWarning("title", f"{title}\0{author}", format_warning(message, other)) if other else None


def check_year(year: int, today: date) -> BookWarning | None:
    message = warn_year(year, today)
    return BookWarning("year", str(year), message) if message else None


def format_warning(message: str, book: Book) -> str:
    """Returns HTML that begins with a link to the book, because users nearly always open it."""
    address = reverse("admin:books_book_change", args=[book.pk])
    return format_html('<a href="{}">{}</a>: {}', address, _("Open that book"), format_html(message, book))
