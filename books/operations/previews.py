"""Previews of operations: exact numbers, and samples of books."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from django.db.models import Count, Exists, F, Func, OuterRef, Q, QuerySet, Sum, TextField, Value
from django.db.models.functions import Length, Replace, StrIndex
from django.utils import timezone

from books.book.fields import FIELDS, MAX_LENGTHS
from books.book_values import BookValues
from books.models import Book
from books.operations.edits import Edit, InvalidEdit
from books.writing import changes

MAX_PREVIEWED_BOOKS = 20
# All characters that `str.strip` removes; by default a database removes only spaces.
BLANK_CHARACTERS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


class Sample(NamedTuple):
    """A book's title and its changed fields; for a deletion all fields, and `after` is None."""

    id: int
    title: str
    before: dict[str, Any]
    after: dict[str, Any] | None


class Preview(NamedTuple):
    """`conflicts` counts books whose new isbn another book has or gets, `invalid` books whose text would be blank or
    too long. Neither would change.
    """

    matched: int
    would_change: int
    conflicts: int
    invalid: int
    samples: list[Sample]


def preview_deletion(books: QuerySet[Book]) -> Preview:
    count = books.count()
    rows = changes.read_rows(books.order_by("pk")[:MAX_PREVIEWED_BOOKS])
    return Preview(count, count, 0, 0, [Sample(row.id, row.title, pick(row, FIELDS), None) for row in rows])


def preview_edit(books: QuerySet[Book], edit: Edit) -> Preview:
    if edit.field:
        differing = annotate_replaced(books, edit)
        valid = differing.exclude(Q(length__gt=MAX_LENGTHS[edit.field]) | Q(stripped=""))
    else:
        # Values of whole fields were checked before.
        differing = valid = books.exclude(**edit.values)
    conflicts = count_conflicts(valid, edit) if "isbn" in edit.list_fields() else 0
    valid_count = valid.count()
    return Preview(
        books.count(),
        valid_count - conflicts,
        conflicts,
        0 if valid is differing else differing.count() - valid_count,
        find_samples(valid, edit),
    )


def annotate_replaced(books: QuerySet[Book], edit: Edit) -> QuerySet[Any]:
    """Returns the books that the edit changes, with the new text. Case matters."""
    new_text = Replace(F(edit.field), Value(edit.find), Value(edit.replacement))
    changed_books = books.annotate(place=StrIndex(F(edit.field), Value(edit.find)), new_text=new_text)
    changed_books = changed_books.annotate(length=Length("new_text"), stripped=strip("new_text"))
    return changed_books.filter(~Q(new_text=F(edit.field)), place__gt=0)


def strip(name: str) -> Func:
    return Func(F(name), Value(BLANK_CHARACTERS), function="TRIM", output_field=TextField())


def count_conflicts(books: QuerySet[Any], edit: Edit) -> int:
    """Returns the number of books that cannot get their new isbn, because another has it or gets it first."""
    if not edit.field:
        is_free = not Book.objects.filter(isbn=edit.values["isbn"]).exists()
        return max(0, books.exclude(isbn=edit.values["isbn"]).count() - is_free)
    in_use = Exists(Book.objects.filter(isbn=OuterRef("new_text")))
    shared = books.filter(~in_use).order_by().values("new_text").annotate(books=Count("pk")).filter(books__gt=1)
    extra = shared.aggregate(extra=Sum(F("books") - 1))["extra"] or 0
    return books.filter(in_use).count() + int(extra)


def find_samples(books: QuerySet[Any], edit: Edit) -> list[Sample]:
    """Returns the first books that change. It does not check whether an isbn is in use; the operation does."""
    now = timezone.now()
    samples = []
    for row in changes.read_rows(books.order_by("pk")[:MAX_PREVIEWED_BOOKS]):
        # The book may have changed since it was selected.
        with suppress(InvalidEdit):
            columns = row.find_changes(edit.build_values(row), now)
            names = [name for name in FIELDS if name in columns]
            samples.append(Sample(row.id, row.title, pick(row, names), {name: columns[name] for name in names}))
    return samples


def pick(row: BookValues, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
