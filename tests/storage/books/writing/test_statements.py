"""The statements that write a book, where they are not those of Django."""

from contextlib import closing

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from books.book_values import make_row
from books.models import Book
from books.writing import changes, statements
from books.writing.changes import read_rows
from library_site.db.integers import BIGINT_MAX
from tests.support.books import ACTOR, build_book
from tests.support.books_admin import create_book


@pytest.mark.usefixtures("db")
def test_a_locked_book_has_the_values_of_the_model() -> None:
    with transaction.atomic():
        pk = create_book(available=False).pk
    [expected] = read_rows(Book.objects.filter(pk=pk))
    with transaction.atomic():
        book = statements.lock_row(pk)
        assert (book, repr(book)) == (expected, repr(expected))
        assert [statements.lock_row(other) for other in (pk + 1, BIGINT_MAX + 1)] == [None, None]


@pytest.mark.usefixtures("transactional_db")
def test_the_first_write_of_a_process_may_change_a_book() -> None:
    with transaction.atomic():
        pk = create_book().pk
    statements.build_converters.cache_clear()
    assert changes.change_book(pk, {"genre": "New"}, None, ACTOR, timezone.now()).genre == "New"


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the whole database")
def test_a_locked_book_is_nobody_elses() -> None:
    with transaction.atomic():
        pk = create_book().pk
    with closing(connection.copy()) as other, transaction.atomic():
        statements.lock_row(pk)
        with other.cursor() as cursor:
            cursor.execute("SELECT id FROM books_book FOR KEY SHARE SKIP LOCKED")
            assert cursor.fetchall() == []


@pytest.mark.usefixtures("db")
@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_more_books_than_a_statement_takes_are_inserted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "MAX_INSERTED_ROWS", 2)
    create_book(isbn="3")
    books = [make_row(build_book(isbn=str(number)), timezone.now()) for number in range(6)]
    inserted = statements.insert_rows(books, statements.INSERT_COLUMNS)
    assert inserted == read_rows(Book.objects.exclude(isbn="3").order_by("pk"))
    assert [book.isbn for book in inserted] == ["0", "1", "2", "4", "5"]


@pytest.mark.usefixtures("db")
def test_an_isbn_in_use_is_an_integrity_error_that_leaves_the_transaction_usable() -> None:
    book, other = create_book(), create_book()
    with transaction.atomic():
        with pytest.raises(IntegrityError, match=f"^Another book has this isbn: {book.isbn}$"):
            Book.objects.create(**build_book(isbn=book.isbn))
        other.isbn = book.isbn
        with pytest.raises(IntegrityError, match=f"^Another book has this isbn: {book.isbn}$"):
            other.save()
        Book.objects.create(**build_book(isbn="free"))
    assert Book.objects.filter(isbn="free").exists()
