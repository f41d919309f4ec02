"""Implements `save` and `delete` of a book: they write through `books.writing.changes`, as the channel "command line".

`books.models` cannot import this module, so `books.apps` registers it there.
"""

import re
from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from books.book_fields import FIELDS
from books.book_values import BookValues
from books.history.actors import get_or_create_actor
from books.models import Actor, Book, UnrecordedWrite
from books.writing import changes

BOOK_COLUMNS = frozenset(field.name for field in Book._meta.concrete_fields)
CREATED_AT = Book._meta.get_field("created_at")
# PostgreSQL cannot store NUL, and lone surrogates cannot be encoded.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
GIVEN_ID = (
    "The database chooses the id of a new book. Leave it out; load a book that is there with Book.objects.get(), and"
    " bring a deleted one back with books.writing.changes.restore_book()."
)
FIXED_CREATION = "The library sets created_at when it adds a book, and never changes it."
UNLOADED_VERSION = "The version of the book was not loaded, so nobody knows what others changed. Do not defer it."


class StaleBook(changes.ConcurrentChange):
    """Another request changed the book after the instance was loaded."""

    def __init__(self, book: Book, current: BookValues) -> None:
        super().__init__(
            f"Book {current.id} is at version {current.version}, and was loaded at version {book.version}. Load it"
            " again, and change that."
        )


def save_instance(book: Book, *, force_insert: bool, force_update: bool, update_fields: Iterable[str] | None) -> None:
    """Adds or changes a book, and sets the computed columns: id, version, times and derived texts.

    The options are Django's. Equal values change nothing. Raises ValidationError, UnrecordedWrite, ConcurrentChange,
    StaleBook, IntegrityError if the isbn is in use, and Book.DoesNotExist if the book is deleted.
    """
    names = None if update_fields is None else require_known_columns(frozenset(update_fields))
    if force_insert and (force_update or names):
        raise ValueError("Cannot force both insert and updating in model saving.")
    if names is not None and not names:
        return
    try:
        if book._state.adding or book.pk is None or force_insert:
            add_instance(book, is_update=bool(force_update or names))
        else:
            change_instance(book, names)
    except changes.IsbnInUse as error:
        raise IntegrityError(f"{error.message}: {error.isbn}") from error
    except changes.BookNotFound as error:
        raise Book.DoesNotExist(f"{error.message}: {book.pk}") from error


def require_known_columns(names: frozenset[str]) -> frozenset[str]:
    """Raises ValueError, as Django does, for an unknown column and for the id."""
    if unknown_names := names - (BOOK_COLUMNS - {"id"}):
        raise ValueError(f"These fields do not exist, or cannot be saved: {', '.join(sorted(unknown_names))}.")
    return names


def add_instance(book: Book, is_update: bool) -> None:
    if book.pk is not None:
        raise UnrecordedWrite(GIVEN_ID)
    if is_update:
        raise ValueError("Cannot force an update in save() with no primary key.")
    clean_fields(book, FIELDS)
    values = {name: getattr(book, name) for name in FIELDS}
    actor, now = get_or_create_actor(Actor.Channel.COMMAND), timezone.now()
    changes.create_book(values, actor, now, instance=book)


def change_instance(book: Book, names: frozenset[str] | None) -> None:
    """Writes the loaded fields that differ; with `names` only these."""
    loaded_names = BOOK_COLUMNS - book.get_deferred_fields()
    if "version" not in loaded_names:
        raise UnrecordedWrite(UNLOADED_VERSION)
    actor, now = get_or_create_actor(Actor.Channel.COMMAND), timezone.now()
    with transaction.atomic():
        row = changes.lock_book(book.pk)
        require_same_book(book, row, loaded_names)
        saved_names = loaded_names if names is None else loaded_names & names
        fields = [name for name in FIELDS if name in saved_names and getattr(book, name) != getattr(row, name)]
        clean_fields(book, fields)
        values = {name: getattr(book, name) for name in fields}
        changes.change_locked_book(row, values, actor, now, instance=book)


def require_same_book(book: Book, row: BookValues, loaded_names: frozenset[str]) -> None:
    """Raises StaleBook, and UnrecordedWrite if the creation time differs."""
    if book.version != row.version:
        raise StaleBook(book, row)
    if "created_at" in loaded_names and CREATED_AT.get_prep_value(book.created_at) != row.created_at:
        raise UnrecordedWrite(FIXED_CREATION)


def clean_fields(book: Book, fields: Iterable[str]) -> None:
    """Converts these fields, as a form does. Raises ValidationError with all invalid fields."""
    book.clean_fields(exclude=BOOK_COLUMNS - frozenset(fields))
    wrong_fields = [name for name in fields if UNSTORABLE.search(str(getattr(book, name)))]
    if wrong_fields:
        raise ValidationError({name: ValidationError("It has a character of no text.") for name in wrong_fields})


def delete_instance(book: Book) -> int:
    """Deletes the book at any version, because it can be restored. Returns the number of deleted books: 1, or 0 if it
    was already deleted.
    """
    if book.pk is None:
        raise ValueError("A book without an id cannot be deleted.")
    actor, now = get_or_create_actor(Actor.Channel.COMMAND), timezone.now()
    try:
        changes.delete_book(book.pk, None, actor, now, instance=book)
        count = 1
    except changes.BookNotFound:
        count = 0
    book.pk = None
    return count
