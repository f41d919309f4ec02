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

from books import events, write_statements
from books.fields import naive_utc
from books.models import DERIVED, Book
from library_site.db.integers import LARGEST
from library_site.db.sql import Row
from webhooks.outbox import SeveralSubjects, publish

BATCH = 1_000
# PostgreSQL let another change go first: a deadlock, or an isolation stricter than its usual one.
GAVE_WAY = {"40P01", "40001"}


class BookNotFound(Exception):
    """No book has this id."""


class IsbnInUse(Exception):
    """Another book has this isbn."""

    def __init__(self, isbn: str) -> None:
        super().__init__(isbn)
        self.isbn = isbn

    def holder(self) -> int | None:
        """The id of that book, as long as it is there."""
        return Book.objects.filter(isbn=self.isbn).values_list("pk", flat=True).first()


class Overtaken(Exception):
    """Another change came first."""


class ChangedMeanwhile(Exception):
    """Two changes met, or waited for each other; this one gave way."""


def create(values: Mapping[str, Any], now: datetime) -> Book:
    """A new book, `now` being an aware datetime. Raises IsbnInUse, ChangedMeanwhile."""
    if write_statements.possible():
        with suppress(SeveralSubjects):
            return created_at_once(values, now)
    with transaction.atomic():
        return add(values, now)


def created_at_once(values: Mapping[str, Any], now: datetime) -> Book:
    """Raises IsbnInUse, ChangedMeanwhile, SeveralSubjects."""
    book = new(values, now)
    with refusals_named(book.isbn):
        written = write_statements.insert(book, now)
    if not written:
        raise IsbnInUse(book.isbn)
    return book


def update(pk: int, values: Mapping[str, Any], require: Callable[[Book], None], now: datetime) -> Book:
    """The book, changed unless `require` raises. Raises BookNotFound, IsbnInUse, ChangedMeanwhile."""
    if write_statements.possible():
        with suppress(Overtaken, SeveralSubjects):
            return updated_at_once(pk, values, require, now)
    with transaction.atomic():
        book = locked(pk)
        require(book)
        change(book, values, now)
    return book


def updated_at_once(pk: int, values: Mapping[str, Any], require: Callable[[Book], None], now: datetime) -> Book:
    """Without a lock. Raises BookNotFound, IsbnInUse, ChangedMeanwhile, Overtaken, SeveralSubjects."""
    book = write_statements.find(pk)
    if book is None:
        raise BookNotFound
    require(book)
    if differing := differing_values(book, values):
        before = altered(book, differing, now)
        with refusals_named(book.isbn):
            written = write_statements.rewrite(book, [*with_derived(differing), "updated_at", "version"], before, now)
        if not written:
            raise Overtaken
    return book


def add(values: Mapping[str, Any], now: datetime, quietly: bool = False) -> Book:
    """A new book, `now` being an aware datetime. Raises IsbnInUse."""
    book = new(values, now)
    with refusals_named(book.isbn):
        book.save(force_insert=True)
    if not quietly:
        publish([events.added(book)], now)
    return book


def new(values: Mapping[str, Any], now: datetime) -> Book:
    """Not yet written."""
    moment = naive_utc(now)
    return Book(**values, created_at=moment, updated_at=moment)


def add_many(rows: Sequence[Mapping[str, Any]], now: datetime, quietly: bool = False) -> set[str]:
    """New books, of the same members and differing isbns; answers the isbns written, the others being in use.

    Raises ChangedMeanwhile.
    """
    if not rows:
        return set()
    write = copied if connection.vendor == "postgresql" else inserted
    with refusals_named():
        written = write(rows, now)
    if not quietly:
        publish(map(events.added, Book.objects.filter(isbn__in=written).order_by("pk")), now)
    return written


def copied(rows: Sequence[Mapping[str, Any]], now: datetime) -> set[str]:
    """By COPY into a table of this transaction's own, since COPY itself cannot pass over a conflict."""
    names = list(rows[0])
    columns = ", ".join([*names, *(field.attname for field in DERIVED)])
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS pg_temp.incoming")
        cursor.execute(f"CREATE TEMPORARY TABLE incoming ON COMMIT DROP AS SELECT {columns} FROM books_book LIMIT 0")
        with cursor.copy(f"COPY incoming ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row([*(row[name] for name in names), *(field.derived(row[field.of]) for field in DERIVED)])
        cursor.execute(
            f"INSERT INTO books_book ({columns}, created_at, updated_at)"
            f" SELECT {columns}, %(now)s, %(now)s FROM incoming ON CONFLICT (isbn) DO NOTHING RETURNING isbn",
            {"now": naive_utc(now)},
        )
        return {isbn for (isbn,) in cursor.fetchall()}


def inserted(rows: Sequence[Mapping[str, Any]], now: datetime) -> set[str]:
    """SQLite's transaction keeps every other writer out, so what is free here stays so."""
    in_use = set(Book.objects.filter(isbn__in=[row["isbn"] for row in rows]).values_list("isbn", flat=True))
    free = [new(row, now) for row in rows if row["isbn"] not in in_use]
    return {book.isbn for book in Book.objects.bulk_create(free)}


def locked(book_id: int) -> Book:
    """The book, which no one else changes before this transaction ends. Raises BookNotFound, ChangedMeanwhile."""
    with refusals_named():
        book = Book.objects.select_for_update().filter(pk=book_id).first()
    if book is None:
        raise BookNotFound
    return book


def locked_all(book_ids: Collection[int]) -> dict[int, Book]:
    """Those of the books that there are, by id, locked in one order for all. Raises ChangedMeanwhile."""
    possible = [pk for pk in book_ids if abs(pk) <= LARGEST]
    with refusals_named():
        return {book.pk: book for book in Book.objects.select_for_update().filter(pk__in=possible).order_by("pk")}


def change(book: Book, values: Mapping[str, Any], now: datetime, quietly: bool = False) -> None:
    """Writes those values of a locked book that differ from its own. Raises IsbnInUse, ChangedMeanwhile."""
    differing = differing_values(book, values)
    if not differing:
        return
    before = altered(book, differing, now)
    with refusals_named(book.isbn):
        book.save(update_fields=[*with_derived(differing), "updated_at", "version"])
    if not quietly:
        publish([events.changed(book, before)], now)


def differing_values(book: Book, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if getattr(book, name) != value}


def set_available(books: QuerySet[Book], available: bool, now: datetime) -> int:
    """Marks all of these books; answers how many were not so before. Raises ChangedMeanwhile."""
    marked = 0
    for batch in locked_batches(books.filter(available=not available)):
        found = Book.objects.filter(pk__in=[book.pk for book in batch])
        with refusals_named():
            marked += found.update(available=available, updated_at=now, version=F("version") + 1)
        before = [altered(book, {"available": available}, now) for book in batch]
        publish(map(events.changed, batch, before), now)
    return marked


def altered(book: Book, values: Mapping[str, Any], now: datetime) -> Row:
    """Changes the object alone; answers its row as it was."""
    before = events.row(book)
    for name, value in {**values, "updated_at": naive_utc(now), "version": book.version + 1}.items():
        setattr(book, name, value)
    return before


def remove(book: Book, now: datetime, quietly: bool = False) -> None:
    """Deletes a locked book. Raises ChangedMeanwhile."""
    announcement = events.removed(book)
    with refusals_named():
        book.delete()
    if not quietly:
        publish([announcement], now)


def remove_all(books: QuerySet[Book], now: datetime) -> None:
    """Deletes all of these books. Raises ChangedMeanwhile."""
    for batch in locked_batches(books):
        removals = [events.removed(book) for book in batch]
        with refusals_named():
            Book.objects.filter(pk__in=[book.pk for book in batch]).delete()
        publish(removals, now)


def locked_batches(books: QuerySet[Book]) -> Iterator[list[Book]]:
    """Some of the books at a time. Each batch must leave `books` before the next, or there is no end."""

    def batch() -> list[Book]:
        with refusals_named():
            return list(books.order_by("pk").select_for_update()[:BATCH])

    return iter(batch, [])


def with_derived(names: Collection[str]) -> list[str]:
    """These columns and those that follow from them."""
    return [*names, *(field.attname for field in DERIVED if field.of in names)]


@contextmanager
def refusals_named(isbn: str = "") -> Iterator[None]:
    """Says in the library's words what the database refused; `isbn` is the one that is written."""
    try:
        yield
    except IntegrityError as error:
        if not is_unique_violation(error):
            raise
        raise IsbnInUse(isbn) from error
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) not in GAVE_WAY:
            raise
        raise ChangedMeanwhile from error


def is_unique_violation(error: IntegrityError) -> bool:
    """Of a book, and not of the event that was written with it."""
    cause: Any = error.__cause__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorname", None)
    # SQLite names the table in its message alone.
    table = str(cause.diag.table_name if hasattr(cause, "diag") else cause)
    return code in ("23505", "SQLITE_CONSTRAINT_UNIQUE") and Book._meta.db_table in table
