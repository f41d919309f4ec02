"""The only functions that write books. Each also writes an event, in the transaction that its caller opened;
`create_book` and `change_book` open their own.

With `announce=False` there is no event: for books of another library, which announced them itself, and for seeds.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import F, QuerySet
from django.http import HttpRequest
from rest_framework.request import Request

from books import events, write_statements
from books.fields import set_derived_fields, to_naive_utc
from books.links import book_url
from books.models import DERIVED_FIELDS, Book
from books.write_statements import copy_books
from library_site.db.integers import BIGINT_MAX
from library_site.db.sql import Row
from library_site.http.refusals import Failure, Problem, Refusal
from webhooks.outbox import publish

CHANGE_BATCH = 1_000
# PostgreSQL refused this transaction in favour of another: a deadlock, or a conflict under a stricter isolation level
# than its default.
CONFLICT_SQLSTATES = {"40P01", "40001"}


class BookNotFound(Refusal):
    """No book has this id."""

    status = 404
    message = "Book not found"


class IsbnInUse(Refusal):
    """Another book has this isbn."""

    status = 409
    message = "Another book has this isbn"

    def __init__(self, isbn: str) -> None:
        super().__init__(isbn)
        self.isbn = isbn

    def find_holder(self) -> int | None:
        """Returns the id of the book that has the isbn, or None if it no longer exists."""
        return Book.objects.filter(isbn=self.isbn).values_list("pk", flat=True).first()

    def to_failure(self, request: HttpRequest | Request) -> Failure:
        """In an answer of the API, links to the book that has the isbn, if it still exists."""
        holder = self.find_holder()
        if not holder or not isinstance(request, Request):
            return Failure(self.status, self.message, [Problem("body", "isbn", self.message, "unique")])
        url = book_url(request, holder)
        problem = Problem("body", "isbn", f"The book at {url} has it", "unique")
        return Failure(self.status, self.message, [problem], {"Link": f'<{url}>; rel="related"'})


class StaleVersion(Exception):
    """Another request changed the book first."""


class ConcurrentChange(Refusal):
    """Two changes of a book at the same time, or two that waited for each other: the database refused this one."""

    status = 409
    message = "The book was changed by another request at the same time"


def create_book(values: Mapping[str, Any], now: datetime) -> Book:
    """Returns a new book; `now` is an aware datetime. Raises IsbnInUse, ConcurrentChange."""
    if can_combine_statements():
        return create_in_one_statement(values, now)
    with transaction.atomic():
        return add_book(values, now)


def can_combine_statements() -> bool:
    """Whether a book and its event are written by one statement."""
    return settings.COMPILED_PATH and connection.vendor == "postgresql"


def create_in_one_statement(values: Mapping[str, Any], now: datetime) -> Book:
    """Writes the book and its event together. Raises IsbnInUse, ConcurrentChange."""
    book = build_book(values, now)
    with translate_db_errors(book.isbn):
        is_written = write_statements.insert_with_event(book, now)
    if not is_written:
        raise IsbnInUse(book.isbn)
    return book


def change_book(pk: int, values: Mapping[str, Any], require_state: Callable[[Book], None], now: datetime) -> Book:
    """Returns the changed book, unless `require_state` raises. Raises BookNotFound, IsbnInUse, ConcurrentChange."""
    if can_combine_statements():
        with suppress(StaleVersion):
            return change_without_lock(pk, values, require_state, now)
    with transaction.atomic():
        book = lock_book(pk)
        require_state(book)
        apply_change(book, values, now)
    return book


def change_without_lock(
    pk: int, values: Mapping[str, Any], require_state: Callable[[Book], None], now: datetime
) -> Book:
    """Reads the book, then writes it if it is still at that version.

    Raises BookNotFound, IsbnInUse, ConcurrentChange, StaleVersion.
    """
    book = write_statements.find_book(pk)
    if book is None:
        raise BookNotFound
    require_state(book)
    if new_values := find_changes(book, values):
        previous_row = alter_object(book, new_values, now)
        columns = [*add_derived_columns(new_values), "updated_at", "version"]
        with translate_db_errors(book.isbn):
            is_written = write_statements.update_with_event(book, columns, previous_row, now)
        if not is_written:
            raise StaleVersion
    return book


def add_book(values: Mapping[str, Any], now: datetime, announce: bool = True) -> Book:
    """Returns a new book; `now` is an aware datetime. Raises IsbnInUse, ConcurrentChange."""
    book = build_book(values, now)
    with translate_db_errors(book.isbn):
        book.save(force_insert=True)
    if announce:
        publish([events.created_event(book)], now)
    return book


def add_books(rows: Sequence[Mapping[str, Any]], now: datetime, announce: bool = True) -> set[str]:
    """Adds books, but none whose isbn another book has. Returns the isbns of the books that were added.

    All rows have the same members, and no isbn occurs twice. Raises ConcurrentChange.
    """
    if not rows:
        return set()
    insert = copy_books if connection.vendor == "postgresql" else insert_books
    with translate_db_errors():
        isbns = insert(rows, now)
    if announce:
        publish(map(events.created_event, Book.objects.filter(isbn__in=isbns).order_by("pk")), now)
    return isbns


def insert_books(rows: Sequence[Mapping[str, Any]], now: datetime) -> set[str]:
    """Adds books on SQLite, where no one else writes during the transaction: isbns that are free remain free."""
    used_isbns = set(Book.objects.filter(isbn__in=[row["isbn"] for row in rows]).values_list("isbn", flat=True))
    books = [build_book(row, now) for row in rows if row["isbn"] not in used_isbns]
    return {book.isbn for book in Book.objects.bulk_create(books)}


def build_book(values: Mapping[str, Any], now: datetime) -> Book:
    """Returns a book that is not yet written to the database."""
    timestamp = to_naive_utc(now)
    book = Book(**values, created_at=timestamp, updated_at=timestamp)
    set_derived_fields(book, DERIVED_FIELDS, values)
    return book


def lock_book(book_id: int) -> Book:
    """Returns the book, which no one else can change before this transaction ends.

    Raises BookNotFound, ConcurrentChange.
    """
    with translate_db_errors():
        book = Book.objects.select_for_update().filter(pk=book_id).first()
    if book is None:
        raise BookNotFound
    return book


def lock_books(book_ids: Collection[int]) -> dict[int, Book]:
    """Locks the books that exist and returns them by id. Raises ConcurrentChange.

    They are locked in the order of their ids, so that two requests do not wait for each other.
    """
    pks = [pk for pk in book_ids if abs(pk) <= BIGINT_MAX]
    with translate_db_errors():
        return {book.pk: book for book in Book.objects.select_for_update().filter(pk__in=pks).order_by("pk")}


def apply_change(book: Book, values: Mapping[str, Any], now: datetime, announce: bool = True) -> None:
    """Writes those values that differ from the locked book's own. Raises IsbnInUse, ConcurrentChange."""
    new_values = find_changes(book, values)
    if not new_values:
        return
    previous_row = alter_object(book, new_values, now)
    with translate_db_errors(book.isbn):
        book.save(update_fields=[*add_derived_columns(new_values), "updated_at", "version"])
    if announce:
        publish([events.updated_event(book, previous_row)], now)


def find_changes(book: Book, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if getattr(book, name) != value}


def set_available(books: QuerySet[Book], available: bool, now: datetime) -> int:
    """Sets `available` of all these books. Returns the number of books that changed. Raises ConcurrentChange."""
    count = 0
    for batch in iter_locked_batches(books.filter(available=not available)):
        locked_books = Book.objects.filter(pk__in=[book.pk for book in batch])
        with translate_db_errors():
            count += locked_books.update(available=available, updated_at=now, version=F("version") + 1)
        previous_rows = [alter_object(book, {"available": available}, now) for book in batch]
        publish(map(events.updated_event, batch, previous_rows), now)
    return count


def alter_object(book: Book, values: Mapping[str, Any], now: datetime) -> Row:
    """Changes the object, but not the database. Returns the `book_row` of the object before the change."""
    previous_row = events.book_row(book)
    for name, value in {**values, "updated_at": to_naive_utc(now), "version": book.version + 1}.items():
        setattr(book, name, value)
    set_derived_fields(book, DERIVED_FIELDS, values)
    return previous_row


def delete_book(book: Book, now: datetime, announce: bool = True) -> None:
    """Deletes a locked book. Raises ConcurrentChange."""
    event = events.deleted_event(book)
    with translate_db_errors():
        book.delete()
    if announce:
        publish([event], now)


def delete_books(books: QuerySet[Book], now: datetime) -> None:
    """Deletes all these books. Raises ConcurrentChange."""
    for batch in iter_locked_batches(books):
        batch_events = [events.deleted_event(book) for book in batch]
        with translate_db_errors():
            Book.objects.filter(pk__in=[book.pk for book in batch]).delete()
        publish(batch_events, now)


def iter_locked_batches(books: QuerySet[Book]) -> Iterator[list[Book]]:
    """Yields the books in locked batches. The caller must change each batch so that it no longer matches `books`:
    otherwise the same batch comes again without end.
    """

    def lock_batch() -> list[Book]:
        with translate_db_errors():
            return list(books.order_by("pk").select_for_update()[:CHANGE_BATCH])

    return iter(lock_batch, [])


def add_derived_columns(names: Collection[str]) -> list[str]:
    """Returns these columns and those that are computed from them."""
    return [*names, *(field.attname for field in DERIVED_FIELDS if field.source in names)]


@contextmanager
def translate_db_errors(isbn: str = "") -> Iterator[None]:
    """Turns database errors into refusals; `isbn` is the one that is written. Raises IsbnInUse, ConcurrentChange."""
    try:
        yield
    except IntegrityError as error:
        if not is_unique_violation(error):
            raise
        raise IsbnInUse(isbn) from error
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) not in CONFLICT_SQLSTATES:
            raise
        raise ConcurrentChange from error


def is_unique_violation(error: IntegrityError) -> bool:
    """Whether another book has the isbn. The error may also be about the event that is written with the book."""
    cause: Any = error.__cause__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorname", None)
    # SQLite names the table only in the message.
    table = str(cause.diag.table_name if hasattr(cause, "diag") else cause)
    return code in ("23505", "SQLITE_CONSTRAINT_UNIQUE") and Book._meta.db_table in table
