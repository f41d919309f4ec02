"""The only writers of books. Each announces what it did, in the transaction that its caller opened; `create` and
`update` open their own.

`quietly` is for what came from another library, which announced it, and for seeds.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import F, QuerySet
from django.http import HttpRequest
from rest_framework.request import Request

from books import events, write_statements
from books.fields import to_naive_utc
from books.links import book_url
from books.models import DERIVED_FIELDS, Book
from library_site.db.integers import BIGINT_MAX
from library_site.db.sql import Row
from library_site.http.refusals import Failure, Problem, Refusal
from webhooks.outbox import publish

CHANGE_BATCH = 1_000
# PostgreSQL let another change go first: a deadlock, or an isolation stricter than its usual one.
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

    def holder(self) -> int | None:
        """The id of that book, as long as it is there."""
        return Book.objects.filter(isbn=self.isbn).values_list("pk", flat=True).first()

    def to_failure(self, request: HttpRequest | Request) -> Failure:
        """Links to the book that has the isbn, as long as it is there, in the request's version; a page has none."""
        holder = self.holder()
        if not holder or not isinstance(request, Request):
            return Failure(self.status, self.message, [Problem("body", "isbn", self.message, "unique")])
        url = book_url(request, holder)
        problem = Problem("body", "isbn", f"The book at {url} has it", "unique")
        return Failure(self.status, self.message, [problem], {"Link": f'<{url}>; rel="related"'})


class StaleVersion(Exception):
    """Another change came first."""


class ConcurrentChange(Refusal):
    """Two changes of a book at the same time, or two that waited for each other: the database refused this one."""

    status = 409
    message = "The book was changed by another request at the same time"


def create_book(values: Mapping[str, Any], now: datetime) -> Book:
    """A new book, `now` being an aware datetime. Raises IsbnInUse, ChangedMeanwhile."""
    if write_statements.is_supported():
        return create_combined(values, now)
    with transaction.atomic():
        return add_book(values, now)


def create_combined(values: Mapping[str, Any], now: datetime) -> Book:
    """Raises IsbnInUse, ConcurrentChange."""
    book = build_book(values, now)
    with translate_db_errors(book.isbn):
        written = write_statements.insert_with_event(book, now)
    if not written:
        raise IsbnInUse(book.isbn)
    return book


def change_book(pk: int, values: Mapping[str, Any], require: Callable[[Book], None], now: datetime) -> Book:
    """The book, changed unless `require` raises. Raises BookNotFound, IsbnInUse, ChangedMeanwhile."""
    if write_statements.is_supported():
        with suppress(StaleVersion):
            return change_combined(pk, values, require, now)
    with transaction.atomic():
        book = lock_book(pk)
        require(book)
        apply_change(book, values, now)
    return book


def change_combined(pk: int, values: Mapping[str, Any], require: Callable[[Book], None], now: datetime) -> Book:
    """Without a lock. Raises BookNotFound, IsbnInUse, ChangedMeanwhile, Overtaken, SeveralSubjects."""
    book = write_statements.find_book(pk)
    if book is None:
        raise BookNotFound
    require(book)
    if differing := find_changes(book, values):
        before = alter_object(book, differing, now)
        with translate_db_errors(book.isbn):
            written = write_statements.update_with_event(
                book, [*add_derived_columns(differing), "updated_at", "version"], before, now
            )
        if not written:
            raise StaleVersion
    return book


def add_book(values: Mapping[str, Any], now: datetime, quietly: bool = False) -> Book:
    """A new book, `now` being an aware datetime. Raises IsbnInUse."""
    book = build_book(values, now)
    with translate_db_errors(book.isbn):
        book.save(force_insert=True)
    if not quietly:
        publish([events.created_event(book)], now)
    return book


def build_book(values: Mapping[str, Any], now: datetime) -> Book:
    """Not yet written."""
    moment = to_naive_utc(now)
    return Book(**values, created_at=moment, updated_at=moment)


def add_books(rows: Sequence[Mapping[str, Any]], now: datetime, quietly: bool = False) -> set[str]:
    """New books, of the same members and differing isbns; answers the isbns written, the others being in use.

    Raises ChangedMeanwhile.
    """
    if not rows:
        return set()
    write = copied if connection.vendor == "postgresql" else insert_books
    with translate_db_errors():
        written = write(rows, now)
    if not quietly:
        publish(map(events.created_event, Book.objects.filter(isbn__in=written).order_by("pk")), now)
    return written


def copied(rows: Sequence[Mapping[str, Any]], now: datetime) -> set[str]:
    """By COPY into a table of this transaction's own, since COPY itself cannot pass over a conflict."""
    names = list(rows[0])
    columns = ", ".join([*names, *(field.attname for field in DERIVED_FIELDS)])
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS pg_temp.incoming")
        cursor.execute(f"CREATE TEMPORARY TABLE incoming ON COMMIT DROP AS SELECT {columns} FROM books_book LIMIT 0")
        with cursor.copy(f"COPY incoming ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(
                    [*(row[name] for name in names), *(field.derive(row[field.source]) for field in DERIVED_FIELDS)]
                )
        cursor.execute(
            f"INSERT INTO books_book ({columns}, created_at, updated_at)"
            f" SELECT {columns}, %(now)s, %(now)s FROM incoming ON CONFLICT (isbn) DO NOTHING RETURNING isbn",
            {"now": to_naive_utc(now)},
        )
        return {isbn for (isbn,) in cursor.fetchall()}


def insert_books(rows: Sequence[Mapping[str, Any]], now: datetime) -> set[str]:
    """SQLite's transaction keeps every other writer out, so what is free here stays so."""
    in_use = set(Book.objects.filter(isbn__in=[row["isbn"] for row in rows]).values_list("isbn", flat=True))
    free = [build_book(row, now) for row in rows if row["isbn"] not in in_use]
    return {book.isbn for book in Book.objects.bulk_create(free)}


def lock_book(book_id: int) -> Book:
    """The book, which no one else changes before this transaction ends. Raises BookNotFound, ChangedMeanwhile."""
    with translate_db_errors():
        book = Book.objects.select_for_update().filter(pk=book_id).first()
    if book is None:
        raise BookNotFound
    return book


def lock_books(book_ids: Collection[int]) -> dict[int, Book]:
    """Those of the books that there are, by id, locked in one order for all. Raises ChangedMeanwhile."""
    possible = [pk for pk in book_ids if abs(pk) <= BIGINT_MAX]
    with translate_db_errors():
        return {book.pk: book for book in Book.objects.select_for_update().filter(pk__in=possible).order_by("pk")}


def apply_change(book: Book, values: Mapping[str, Any], now: datetime, quietly: bool = False) -> None:
    """Writes those values of a locked book that differ from its own. Raises IsbnInUse, ChangedMeanwhile."""
    differing = find_changes(book, values)
    if not differing:
        return
    before = alter_object(book, differing, now)
    with translate_db_errors(book.isbn):
        book.save(update_fields=[*add_derived_columns(differing), "updated_at", "version"])
    if not quietly:
        publish([events.updated_event(book, before)], now)


def find_changes(book: Book, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if getattr(book, name) != value}


def set_available(books: QuerySet[Book], available: bool, now: datetime) -> int:
    """Marks all of these books; answers how many were not so before. Raises ChangedMeanwhile."""
    marked = 0
    for batch in iter_locked_batches(books.filter(available=not available)):
        found = Book.objects.filter(pk__in=[book.pk for book in batch])
        with translate_db_errors():
            marked += found.update(available=available, updated_at=now, version=F("version") + 1)
        before = [alter_object(book, {"available": available}, now) for book in batch]
        publish(map(events.updated_event, batch, before), now)
    return marked


def alter_object(book: Book, values: Mapping[str, Any], now: datetime) -> Row:
    """Changes the object alone; answers its row as it was."""
    before = events.book_row(book)
    for name, value in {**values, "updated_at": to_naive_utc(now), "version": book.version + 1}.items():
        setattr(book, name, value)
    return before


def delete_book(book: Book, now: datetime, quietly: bool = False) -> None:
    """Deletes a locked book. Raises ChangedMeanwhile."""
    announcement = events.deleted_event(book)
    with translate_db_errors():
        book.delete()
    if not quietly:
        publish([announcement], now)


def delete_books(books: QuerySet[Book], now: datetime) -> None:
    """Deletes all of these books. Raises ChangedMeanwhile."""
    for batch in iter_locked_batches(books):
        removals = [events.deleted_event(book) for book in batch]
        with translate_db_errors():
            Book.objects.filter(pk__in=[book.pk for book in batch]).delete()
        publish(removals, now)


def iter_locked_batches(books: QuerySet[Book]) -> Iterator[list[Book]]:
    """Some of the books at a time. Each batch must leave `books` before the next, or there is no end."""

    def batch() -> list[Book]:
        with translate_db_errors():
            return list(books.order_by("pk").select_for_update()[:CHANGE_BATCH])

    return iter(batch, [])


def add_derived_columns(names: Collection[str]) -> list[str]:
    """These columns and those that follow from them."""
    return [*names, *(field.attname for field in DERIVED_FIELDS if field.source in names)]


@contextmanager
def translate_db_errors(isbn: str = "") -> Iterator[None]:
    """Says in the library's words what the database refused; `isbn` is the one that is written."""
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
    """Of a book, and not of the event that was written with it."""
    cause: Any = error.__cause__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorname", None)
    # SQLite names the table in its message alone.
    table = str(cause.diag.table_name if hasattr(cause, "diag") else cause)
    return code in ("23505", "SQLITE_CONSTRAINT_UNIQUE") and Book._meta.db_table in table
