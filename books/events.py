"""What events tell of books: the book as the latest version shows it, and what its members were before."""

from typing import Any

from django.conf import settings
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string

from books.models import Book
from books.read_model import Representation
from library_site.db.sql import Row
from webhooks.outbox import Announcement
from webhooks.registry import CREATED, DELETED, UPDATED

# Of an upper layer.
representation: Representation = SimpleLazyObject(lambda: import_string(settings.EVENT_REPRESENTATION))  # type: ignore[assignment]  # stands for it
# Every change changes them.
ALWAYS_NEW = {"updated_at", "version"}


def added(book: Book) -> Announcement:
    return of(CREATED, book, {})


def changed(book: Book, before: Row) -> Announcement:
    """`before` is `row` of the book as it was."""
    pairs = zip(representation.members, before, row(book), strict=True)
    previous = {name: old for name, old, new in pairs if old != new and name not in ALWAYS_NEW}
    return of(UPDATED, book, previous)


def removed(book: Book) -> Announcement:
    """Django takes the id away from an object that it deletes: made before."""
    return of(DELETED, book, {})


def of(kind: str, book: Book, previous: dict[str, Any]) -> Announcement:
    return Announcement(kind, book.pk, {"book": representation.shown_one(book), "previous": previous})


def row(book: Book) -> Row:
    return representation.row(book)
