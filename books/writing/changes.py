"""The only functions that write books. Each also writes the history and an event, in its caller's transaction.
`create_book`, `change_book`, `delete_book` and `restore_book` work without one, too.

PostgreSQL creates or changes a book with its history and its event in one statement. Deleting or restoring one book
uses the functions for many.

With `announce=False` there is no event: for seeds, and for operations that keep quiet.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from typing import Any, cast

from django.db import DEFAULT_DB_ALIAS, DatabaseError, IntegrityError, OperationalError, connection, transaction
from django.db.models import DO_NOTHING, QuerySet
from django.db.models.deletion import Collector, get_candidate_relations_to_delete
from django.utils.translation import gettext_noop

from books.book_values import BookValues, add_derived_values, make_row, set_columns
from books.history.actors import ActorRef
from books.history.records import (
    ChangeRecord,
    insert_records,
    record_change,
    record_creation,
    record_deletion,
    record_restoration,
)
from books.history.states import read_deleted_book
from books.models import Book, Change
from books.writing import events, signals, statements
from books.writing.id_sequence import reserve_id
from books.writing.statements import INSERT_COLUMNS, can_combine_statements, insert_rows
from library_site.db.errors import is_conflict
from library_site.db.integers import BIGINT_MAX
from library_site.http.api_errors import APIError
from webhooks.outbox import publish

# Raises an exception if the book is not in the expected state.
RequireState = Callable[[BookValues], None]


class BookNotFound(APIError):
    """No book has this id."""

    status_code = 404
    default_detail = gettext_noop("Book not found")


class BookExists(APIError):
    """The book to be restored exists."""

    status_code = 409
    default_detail = gettext_noop("The book is not deleted")


class BookProtected(APIError):
    """A row of another model refers to the book, and is neither deleted nor changed with it (`on_delete`)."""

    status_code = 409
    default_detail = gettext_noop("The book cannot be deleted: something else refers to it")

    def __init__(self, cause: IntegrityError) -> None:
        super().__init__()
        self.cause = cause


class IsbnInUse(APIError):
    """Another book has this isbn."""

    status_code = 409
    default_detail = gettext_noop("Another book has this isbn")

    def __init__(self, isbn: str) -> None:
        super().__init__()
        self.isbn = isbn


class StaleVersion(Exception):
    """Another request changed the book first."""


class ConcurrentChange(APIError):
    """The database rejected this change because of another change of the book, or because of a deadlock."""

    status_code = 409
    default_detail = gettext_noop("The book was changed by another request at the same time")
    is_temporary = True


def create_book(values: Mapping[str, Any], actor: ActorRef, now: datetime, instance: Book | None = None) -> BookValues:
    """Returns a new book, and sets its columns on `instance`. `now` is an aware datetime.

    Raises IsbnInUse, ConcurrentChange.
    """
    book = make_row(values, now)
    with nullcontext() if needs_no_transaction() else transaction.atomic():
        with translate_db_errors(book.isbn):
            pk = statements.insert_row(book, actor, now)
        if pk is None:
            raise IsbnInUse(book.isbn)
        new_book = book._replace(id=pk)
        if instance:
            set_columns(instance, new_book._asdict())
        signals.send_created([new_book], instance)
        return read_again(new_book)


def change_book(
    pk: int,
    values: Mapping[str, Any],
    require_state: RequireState | None,
    actor: ActorRef,
    now: datetime,
    read_book: BookValues | None = None,
    announce: bool = True,
) -> BookValues:
    """Returns the changed book, unless `require_state` raises. Raises BookNotFound, IsbnInUse, ConcurrentChange.

    `read_book` is the book if the caller has already read it.
    """
    if needs_no_transaction():
        with suppress(StaleVersion):
            book = read_book or statements.select_book(pk)
            if not book:
                raise BookNotFound
            if require_state:
                require_state(book)
            return change_locked_book(book, values, actor, now, announce)
    with transaction.atomic():
        book = lock_book(pk)
        if require_state:
            require_state(book)
        return change_locked_book(book, values, actor, now, announce)


def needs_no_transaction() -> bool:
    """Whether one statement is the whole change. If a receiver of a signal raises, the change must be rolled back."""
    return can_combine_statements() and not signals.has_save_receivers()


def delete_book(
    pk: int,
    require_state: RequireState | None,
    actor: ActorRef,
    now: datetime,
    instance: Book | None = None,
) -> dict[str, int]:
    """Deletes a book, unless `require_state` raises. Returns the numbers of deleted rows by model.

    Raises BookNotFound, BookProtected, ConcurrentChange.
    """
    with transaction.atomic():
        book = lock_book(pk)
        if require_state:
            require_state(book)
        return delete_books([book], actor, now, instance=instance)


def restore_book(pk: int, actor: ActorRef, now: datetime) -> BookValues:
    """Restores a deleted book under its old id and with a higher version.

    Raises BookNotFound if no book ever had the id or its deletion is unknown, BookExists, IsbnInUse, ConcurrentChange.
    """
    with transaction.atomic():
        deleted_book = read_deleted_book(pk, now)
        if deleted_book is None and is_there(pk):
            raise BookExists
        # Another request may have restored and deleted it between the two statements.
        deleted_book = deleted_book or read_deleted_book(pk, now)
        if deleted_book is None:
            raise BookNotFound
        if not restore_books([deleted_book], actor, now):
            raise BookExists if is_there(pk) else IsbnInUse(deleted_book.isbn)
        return read_again(deleted_book)


def add_book_with_id(
    pk: int, values: Mapping[str, Any], actor: ActorRef, now: datetime, created_at: datetime | None = None
) -> BookValues:
    """Adds a book under an id that the database did not choose; restores it if it is deleted. Sends no signal.

    Raises BookExists, IsbnInUse, ConcurrentChange.
    """
    with transaction.atomic():
        reserve_id(pk, DEFAULT_DB_ALIAS)
        deleted_book = read_deleted_book(pk, now)
        book = deleted_book or make_row({**values, "created_at": created_at or now}, now)._replace(id=pk)
        book = book._replace(**add_derived_values(values))
        record = record_restoration if deleted_book else record_creation
        if not insert_books([book], record, actor, now, announce=True):
            raise BookExists if is_there(pk) else IsbnInUse(book.isbn)
        return book


def is_there(pk: int) -> bool:
    return Book.objects.filter(pk=pk).exists()


def create_books(
    rows: Sequence[Mapping[str, Any]], actor: ActorRef | None, now: datetime, announce: bool = True
) -> set[str]:
    """Adds books, except those whose isbn is in use. Returns the isbns of the added books.

    Without an actor there is no history. All rows have the same fields, and no isbn occurs twice. Raises
    ConcurrentChange.
    """
    if not rows:
        return set()
    new_books = [make_row(row, now) for row in rows]
    with translate_db_errors():
        books = insert_rows(new_books, INSERT_COLUMNS)
    if actor:
        insert_records(map(record_creation, books), actor, now)
    if announce:
        publish(map(events.created_event, books), now)
    signals.send_created(books)
    return {book.isbn for book in books}


def read_rows(books: QuerySet[Book]) -> list[BookValues]:
    return [BookValues._make(row) for row in books.values_list(*BookValues._fields)]


def lock_book(pk: int) -> BookValues:
    """Returns the book. No one else can change it before this transaction ends.

    Raises BookNotFound, ConcurrentChange.
    """
    with translate_db_errors():
        book = statements.lock_row(pk)
    if book is None:
        raise BookNotFound
    return book


def lock_books(pks: Collection[int], among: QuerySet[Book] | None = None) -> dict[int, BookValues]:
    """Locks those of the books that exist, by default among all, and returns them by id. Raises ConcurrentChange.

    It locks them in the order of their ids, so that two requests do not wait for each other.
    """
    known_pks = [pk for pk in pks if abs(pk) <= BIGINT_MAX]
    books = Book.objects.filter(pk__in=known_pks)
    if among is not None:
        # PostgreSQL cannot lock the rows of every queryset: not of a distinct one, for instance.
        books = books.filter(pk__in=among.order_by().filter(pk__in=known_pks).values("pk"))
    with translate_db_errors():
        return {book.id: book for book in read_rows(books.select_for_update().order_by("pk"))}


def lock_again(books: dict[int, BookValues]) -> dict[int, BookValues]:
    """Returns locked books as they are now: receivers of signals may have changed them in this transaction."""
    return lock_books(books) if signals.has_receivers() else books


def read_again(book: BookValues) -> BookValues:
    """Returns a written book as it is stored: receivers of its signal may have changed it, which is another change."""
    return (statements.lock_row(book.id) if signals.has_save_receivers() else None) or book


def change_locked_book(
    book: BookValues,
    values: Mapping[str, Any],
    actor: ActorRef,
    now: datetime,
    announce: bool = True,
    instance: Book | None = None,
) -> BookValues:
    """Writes the values that differ. Returns the stored book, and sets its new columns on `instance`.

    Raises IsbnInUse, ConcurrentChange, and StaleVersion if the book is not locked and another request changed it.
    """
    columns = book.find_changes(values, now)
    if not columns:
        return book
    changed_book = book._replace(**columns)
    with translate_db_errors(changed_book.isbn):
        is_written = statements.update_row(book, changed_book, tuple(columns), actor, now, announce)
    if not is_written:
        raise StaleVersion
    if instance:
        set_columns(instance, columns)
    signals.send_changed([(book, changed_book)], instance)
    return read_again(changed_book)


def change_books(
    pairs: Sequence[tuple[BookValues, BookValues]], actor: ActorRef, now: datetime, announce: bool = True
) -> None:
    """Writes locked books together, each given as it is and as it should be. All differ, and none changes its isbn.

    Raises ConcurrentChange, also if a book is at another version: a receiver of a signal may have changed it.
    """
    columns = [
        name for name in BookValues._fields if any(getattr(old, name) != getattr(new, name) for old, new in pairs)
    ]
    with translate_db_errors():
        if statements.update_rows([new for _, new in pairs], columns) < len(pairs):
            raise ConcurrentChange
    insert_records((record_change(*pair) for pair in pairs), actor, now)
    if announce:
        publish((events.updated_event(*pair) for pair in pairs), now)
    signals.send_changed(pairs)


def restore_books(books: Sequence[BookValues], actor: ActorRef, now: datetime, announce: bool = True) -> set[int]:
    """Restores deleted books together, under their old ids and with higher versions.

    Returns their ids, except those of books whose id or isbn is in use. Raises ConcurrentChange.
    """
    restored_books = insert_books(books, record_restoration, actor, now, announce)
    signals.send_created(restored_books)
    return {book.id for book in restored_books}


def insert_books(
    books: Sequence[BookValues],
    record: Callable[[BookValues], ChangeRecord],
    actor: ActorRef,
    now: datetime,
    announce: bool,
) -> list[BookValues]:
    """Inserts books with their ids, except those whose id or isbn is in use, and returns them."""
    with translate_db_errors():
        inserted_books = insert_rows(books, BookValues._fields)
        insert_records(map(record, inserted_books), actor, now)
    if announce:
        publish(map(events.created_event, inserted_books), now)
    return inserted_books


def delete_books(
    books: Sequence[BookValues],
    actor: ActorRef,
    now: datetime,
    announce: bool = True,
    merged_into: int | None = None,
    instance: Book | None = None,
) -> dict[str, int]:
    """Deletes locked books together. `merged_into` is the id of their replacement.

    Returns the numbers of deleted rows by model. Raises BookProtected, ConcurrentChange.
    """
    with translate_db_errors():
        counts = delete_rows(books, instance)
        insert_records((record_deletion(book, merged_into) for book in books), actor, now)
    if announce:
        publish(map(events.deleted_event, books), now)
    signals.send_deleted(books, instance)
    return counts


def delete_unprotected_books(books: Sequence[BookValues], actor: ActorRef, now: datetime, announce: bool) -> list[int]:
    """Deletes locked books together. Returns the ids of those that other rows protect, and does not delete these.

    Raises ConcurrentChange.
    """
    try:
        with transaction.atomic():
            delete_books(books, actor, now, announce)
    except BookProtected:
        if len(books) == 1:
            return [books[0].id]
        halves = books[: len(books) // 2], books[len(books) // 2 :]
        return [pk for half in halves for pk in delete_unprotected_books(half, actor, now, announce)]
    return []


def delete_rows(books: Sequence[BookValues], instance: Book | None) -> dict[str, int]:
    """Deletes the books, and first does with rows of other apps that refer to them what their `on_delete` says."""
    relations: Iterable[Any] = get_candidate_relations_to_delete(cast("Any", Book._meta))
    fields = [one.field for one in relations if one.related_model._meta.app_label != Book._meta.app_label]
    counts: dict[str, int] = {}
    try:
        if fields:
            collector = Collector(DEFAULT_DB_ALIAS, origin=instance)
            collector.collect([instance or signals.build_instance(book) for book in books])
            # It would send the signals of the books before their history is written.
            collector.data[Book].clear()
            _, counts = collector.delete()
        Book._base_manager.filter(pk__in=[book.id for book in books])._raw_delete(DEFAULT_DB_ALIAS)
        if any(field.remote_field.on_delete is DO_NOTHING for field in fields):
            # The database checks at the end of the transaction, which is too late for an answer.
            connection.check_constraints([field.model._meta.db_table for field in fields])
    except IntegrityError as error:
        raise BookProtected(error) from error
    return {**counts, Book._meta.label: len(books)}


@contextmanager
def translate_db_errors(isbn: str = "") -> Iterator[None]:
    """Converts database errors of a `with` block to IsbnInUse and ConcurrentChange. `isbn` is the isbn that is
    written.
    """
    try:
        yield
    except (IntegrityError, OperationalError) as error:
        table = find_violated_table(error)
        if table == Book._meta.db_table:
            raise IsbnInUse(isbn) from error
        if table == Change._meta.db_table or is_conflict(error):
            raise ConcurrentChange from error
        raise


def find_violated_table(error: DatabaseError) -> str:
    """Returns the table of the violated unique constraint, "" for other errors."""
    cause: Any = error.__cause__
    if getattr(cause, "sqlstate", None) == "23505":
        return str(cause.diag.table_name)
    if getattr(cause, "sqlite_errorname", None) == "SQLITE_CONSTRAINT_UNIQUE":
        # SQLite names the columns in its message: "UNIQUE constraint failed: table.column, ...".
        return str(cause).rpartition(": ")[2].partition(".")[0]
    return ""
