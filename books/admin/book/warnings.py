"""Warnings before a book is saved. The librarian may ignore them."""

from collections.abc import Collection, Mapping
from datetime import date
from hashlib import blake2b
from typing import Any, NamedTuple

from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from books.models import Book
from books.search.duplicates import find_same_isbn, find_same_works
from books.search.quality import warn_isbn, warn_year


class BookWarning(NamedTuple):
    """A warning about the value of a field. A message with links is safe HTML.

    If `needs_yes` is set, showing the warning is not enough: the librarian must accept it.
    """

    field: str
    value: str
    message: str
    needs_yes: bool = False

    @property
    def token(self) -> str:
        """The form sends this token to tell that the page has shown the warning."""
        return blake2b(f"{self.field}\0{self.value}\0{self.message}".encode(), digest_size=8).hexdigest()


SAME_WORK = gettext_noop("{} has the same title and author. It may be the same book.")
SAME_MAIN_TITLE = gettext_noop("{} has the same title but for the subtitle, and the same author.")


def find_warnings(values: Mapping[str, Any], edited: Collection[str], pk: int | None, today: date) -> list[BookWarning]:
    """Returns warnings about the fields that the librarian edited. `pk` is the id of the book, None for a new one.

    `values` leaves out invalid values. Takes at most two queries.
    """
    others = Book.objects.exclude(pk=pk) if pk else Book.objects.all()
    warnings: list[BookWarning] = []
    if "isbn" in edited and "isbn" in values:
        isbn = values["isbn"]
        if message := warn_isbn(isbn):
            warnings.append(BookWarning("isbn", isbn, message))
        # In another notation: the same notation is an error of the form.
        if other := others.filter(find_same_isbn(isbn)).first():
            warnings.append(
                BookWarning("isbn", isbn, format_warning(_("{} has the same ISBN."), other), needs_yes=True)
            )
    if {"title", "author"} & set(edited) and "title" in values and "author" in values:
        work = (values["title"], values["author"])
        pks = find_same_works([work]).get(work, {})
        if other := others.filter(pk__in=pks).order_by("pk").first():
            sentence = SAME_WORK if pks[other.pk] else SAME_MAIN_TITLE
            message = format_warning(_(sentence), other)
            warnings.append(BookWarning("title", "\0".join(work), message))
    if "year" in edited and "year" in values and (message := warn_year(values["year"], today)):
        warnings.append(BookWarning("year", str(values["year"]), message))
    return warnings


def format_warning(message: str, book: Book) -> str:
    """Returns HTML that begins with a link to the book, because users nearly always open it."""
    address = reverse("admin:books_book_change", args=[book.pk])
    return format_html('<a href="{}">{}</a>: {}', address, _("Open that book"), format_html(message, book))
