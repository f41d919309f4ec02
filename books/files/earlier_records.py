"""Remembers the earlier records of a file, so that a later record about the same book is rejected.

The result for a record depends on the records before it, but never on the size of a batch. So records are compared with
the library as it was before the import: books that the import added do not match, and a book whose isbn it changed
still matches by its former isbn.
"""

import sqlite3
from collections.abc import Collection
from enum import IntEnum

from books.book.isbn import normalize_isbn
from books.models import Change


class RecordKey(IntEnum):
    """The kind of a key: the isbn, isbn13 or id of a record, or the id of the book that it matches."""

    ISBN = 1
    ISBN13 = 2
    ID = 3
    BOOK = 4
    # For books whose isbn a record changes: their former isbn and isbn13, each with the id, and their ids.
    FORMER_ISBN = 5
    FORMER_ISBN13 = 6
    CHANGED_BOOK = 7


class EarlierRecords:
    """Maps each key of the earlier records to a number: a line, or the id of a book. Many keys go to disk.

    `operation_id` is the import's id, None for a check, which changes nothing.
    """

    def __init__(self, operation_id: int | None = None) -> None:
        self.operation_id = operation_id
        # A temporary database: the keys of a million records would take 200 MB.
        self.database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self.database.execute(
            "CREATE TABLE numbers (key INTEGER, value, number INTEGER, PRIMARY KEY (key, value)) WITHOUT ROWID"
        )
        self.database.execute("BEGIN")
        self.position = 0
        self.has_changes = False

    def begin_batch(self, position: int) -> None:
        """`position` is the position of the batch's first record. A batch begins again if its transaction was rolled
        back; then what it remembered is forgotten.
        """
        self.database.execute("COMMIT" if position > self.position else "ROLLBACK")
        self.database.execute("BEGIN")
        self.position = position

    def find(self, key: RecordKey, value: str | int | None) -> int | None:
        """Returns the line of the first record with this key. For a former isbn, returns the lowest id of a book."""
        if value is None or (key >= RecordKey.FORMER_ISBN and not self.has_changes):
            return None
        row = self.database.execute("SELECT number FROM numbers WHERE key = ? AND value = ?", (key, value)).fetchone()
        return row[0] if row else None

    def remember(self, key: RecordKey, value: str | int | None, number: int) -> None:
        if value is not None:
            insertion = (
                "INSERT INTO numbers VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET number = min(number, excluded.number)"
            )
            self.database.execute(insertion, (key, value, number))

    def remember_former(self, pk: int, isbn: str) -> None:
        """Remembers the isbn that the book had before the import."""
        self.has_changes = True
        self.remember(RecordKey.FORMER_ISBN, isbn, pk)
        self.remember(RecordKey.FORMER_ISBN13, normalize_isbn(isbn), pk)
        self.remember(RecordKey.CHANGED_BOOK, pk, pk)

    def load_former(self) -> None:
        """Reads from the history which isbns the import has changed, before another worker continues with the file."""
        if self.operation_id is None:
            return
        rows = Change.objects.filter(operation=self.operation_id, kind=Change.Kind.CHANGED, before__has_key="isbn")
        for pk, before in rows.values_list("book_id", "before").iterator(chunk_size=1_000):
            self.remember_former(pk, (before or {})["isbn"])

    def list_added(self, pks: Collection[int]) -> set[int]:
        """Returns which of these books the import has added."""
        if self.operation_id is None or not pks:
            return set()
        # The version uses an index; an operation has none.
        rows = Change.objects.filter(book_id__in=pks, version=1).values_list("book_id", "operation")
        return {pk for pk, operation_id in rows if operation_id == self.operation_id}
