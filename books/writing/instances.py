"""Implements `save` and `delete` of a book: they write through `books.writing.changes`, as whoever sent the request, or
as the channel "command line".
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, IntegrityError, transaction
from django.utils import timezone

from books.book.fields import FIELDS, MAX_LENGTHS
from books.book_values import BookValues, set_columns
from books.history.actors import get_current_actor
from books.models import Book, UnrecordedWrite
from books.writing import changes, signals

BOOK_COLUMNS = frozenset(field.name for field in Book._meta.concrete_fields)
# PostgreSQL cannot store NUL, and lone surrogates cannot be encoded.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
FIXED_CREATION = "The library sets created_at when it adds a book, and never changes it."


class StaleBook(changes.ConcurrentChange):
    """Another request changed the book after the instance was loaded."""

    def __init__(self, book: Book, current: BookValues) -> None:
        super().__init__(
            f"Book {current.id} is at version {current.version}, and was loaded at version {book.version}. Load it"
            " again, and change that."
        )


def save_instance(
    book: Book, using: str | None, force_insert: bool, force_update: bool, update_fields: Iterable[str] | None
) -> None:
    """Adds or changes a book, and sets the computed columns: id, version, times and derived texts.

    The options are those of Django's `save_base`. Equal values change nothing. Raises ValidationError, UnrecordedWrite,
    ConcurrentChange, StaleBook, IntegrityError if the id or the isbn is in use, and Book.DoesNotExist if the book is
    deleted.
    """
    is_update = bool(force_update or update_fields)
    book.pk = Book._meta.pk.to_python(book.pk)
    if book.pk is None and is_update:
        raise ValueError("Cannot force an update in save() with no primary key.")
    is_new = book.pk is None or (book._state.adding and not is_update and not Book.objects.filter(pk=book.pk).exists())
    with translate_errors(book, using):
        if force_insert or is_new:
            add_instance(book)
        else:
            change_instance(book, update_fields)


@contextmanager
def translate_errors(book: Book, using: str | None) -> Iterator[None]:
    """Raises the exceptions that Django raises for a model without history, and UnrecordedWrite elsewhere."""
    if using not in (None, DEFAULT_DB_ALIAS):
        raise UnrecordedWrite("Books are written to the default database alone, which has their history and events.")
    try:
        yield
    except changes.IsbnInUse as error:
        raise IntegrityError(f"{error.default_detail}: {error.isbn}") from error
    except changes.BookExists as error:
        raise IntegrityError(f"Another book has this id: {book.pk}") from error
    except changes.BookNotFound as error:
        raise Book.DoesNotExist(f"{error.default_detail}: {book.pk}") from error
    except changes.BookProtected as error:
        raise error.cause from error


def add_instance(book: Book) -> None:
    if any(hasattr(getattr(book, name), "resolve_expression") for name in FIELDS):
        raise ValueError("A new book takes values, and no expressions.")
    clean_fields(book, FIELDS)
    values = {name: getattr(book, name) for name in FIELDS}
    actor, now = get_current_actor(), timezone.now()
    if book.pk is None:
        changes.create_book(values, actor, now, instance=book)
        return
    with transaction.atomic():
        row = changes.add_book_with_id(book.pk, values, actor, now)
        set_columns(book, row._asdict())
        signals.send_created([row], book)


def load_instance(book: Book, using: str | None) -> None:
    """Adds a book of a fixture under its id: it keeps its creation time, and has a history and an event from now on."""
    with translate_errors(book, using):
        values = {name: getattr(book, name) for name in FIELDS}
        actor, now = get_current_actor(), timezone.now()
        row = changes.add_book_with_id(book.pk, values, actor, now, created_at=book.created_at)
    set_columns(book, row._asdict())


def change_instance(book: Book, names: Iterable[str] | None) -> None:
    """Writes the loaded fields that differ; with `names` only these."""
    # Of a book that was not read, only the fields are known.
    loaded_names = frozenset(FIELDS) if book._state.adding else BOOK_COLUMNS - book.get_deferred_fields()
    actor, now = get_current_actor(), timezone.now()
    with transaction.atomic():
        row = changes.lock_book(book.pk)
        require_same_book(book, row, loaded_names)
        saved_names = loaded_names if names is None else loaded_names.intersection(names)
        fields = [name for name in FIELDS if name in saved_names and getattr(book, name) != getattr(row, name)]
        for name in fields:
            # Such as `F("year") + 1`.
            if hasattr(getattr(book, name), "resolve_expression"):
                setattr(book, name, Book.objects.values_list(getattr(book, name), flat=True).get(pk=book.pk))
        clean_fields(book, fields)
        values = {name: getattr(book, name) for name in fields}
        changes.change_locked_book(row, values, actor, now, instance=book)


def require_same_book(book: Book, row: BookValues, loaded_names: frozenset[str]) -> None:
    """Raises StaleBook, and UnrecordedWrite if the creation time differs."""
    if "version" in loaded_names and book.version != row.version:
        raise StaleBook(book, row)
    if "created_at" in loaded_names and book.created_at != row.created_at:
        raise UnrecordedWrite(FIXED_CREATION)


def clean_fields(book: Book, fields: Iterable[str]) -> None:
    """Converts these fields, as a form does, but keeps blank texts. Raises ValidationError with all invalid fields."""
    names = {name for name in fields if name not in MAX_LENGTHS or getattr(book, name) != ""}
    book.clean_fields(exclude=BOOK_COLUMNS - names)
    wrong_fields = [name for name in names if UNSTORABLE.search(str(getattr(book, name)))]
    if wrong_fields:
        raise ValidationError({name: ValidationError("It has a character of no text.") for name in wrong_fields})


def delete_instance(book: Book, using: str | None) -> tuple[int, dict[str, int]]:
    """Deletes the book at any version, because it can be restored. Returns what Django returns: the numbers of deleted
    rows by model; 0 books if it was already deleted.
    """
    if book.pk is None:
        raise ValueError("A book without an id cannot be deleted.")
    counts = {Book._meta.label: 0}
    with translate_errors(book, using), suppress(changes.BookNotFound):
        counts = changes.delete_book(book.pk, None, get_current_actor(), timezone.now(), instance=book)
    book.pk = None
    return sum(counts.values()), counts
