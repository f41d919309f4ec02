"""Remembers what the earlier records of a file are about, so that a later one about the same book is refused.

What becomes of a record depends on those before it, but never on how many are written together. So records are compared
with the library as it was before the import: books that the import added do not count, and those whose isbn it changed
count with the former one.
"""

import sqlite3
from collections.abc import Collection
from enum import IntEnum

from books.isbn import normalize_isbn
from books.models import Change


class RecordKey(IntEnum):
    """What a value is: the isbn, the isbn13 or the id that a record has, or the id of the book that it is about."""

    ISBN = 1
    ISBN13 = 2
    ID = 3
    BOOK = 4
    # Of books whose isbn a record changes: what they had before, each with the id; and the ids.
    FORMER_ISBN = 5
    FORMER_ISBN13 = 6
    CHANGED_BOOK = 7


class EarlierRecords:
    """A number for each key of the earlier records: a line, or the id of a book. They are on disk where they are many.

    The records of a batch are remembered for good when the next batch begins: a batch whose transaction was given up
    begins again. `operation_id` is that of the import, None of a check, which changes nothing.
    """

    def __init__(self, operation_id: int | None = None) -> None:
        self.operation_id = operation_id
        # A temporary database: the keys of a million records would take 200 MB.
        self.database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self.database.execute("PRAGMA journal_mode = OFF")
        self.database.execute(
            "CREATE TABLE numbers (key INTEGER, value, number INTEGER, PRIMARY KEY (key, value)) WITHOUT ROWID"
        )
        self.database.execute("BEGIN")
        self.position = 0
        self.has_changes = False
        self.batch: dict[tuple[RecordKey, str | int], int] = {}

    def begin_batch(self, position: int) -> None:
        """`position` is that of the first record."""
        if position > self.position:
            self.store(self.batch)
        self.position, self.batch = position, {}

    def store(self, lines: dict[tuple[RecordKey, str | int], int]) -> None:
        insertion = (
            "INSERT INTO numbers VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET number = min(number, excluded.number)"
        )
        self.database.executemany(insertion, [(key, value, line) for (key, value), line in lines.items()])

    def find(self, key: RecordKey, value: str | int | None) -> int | None:
        """Returns the line of the first record with this key; for a former isbn, the lowest id of a book."""
        if value is None or (key >= RecordKey.FORMER_ISBN and not self.has_changes):
            return None
        row = self.database.execute("SELECT number FROM numbers WHERE key = ? AND value = ?", (key, value)).fetchone()
        found = [*(row or ()), *((self.batch[key, value],) if (key, value) in self.batch else ())]
        return min(found, default=None)

    def remember(self, key: RecordKey, value: str | int | None, line: int) -> None:
        if value is not None:
            self.batch[key, value] = min(line, self.batch.get((key, value), line))

    def remember_former(self, pk: int, isbn: str) -> None:
        """The book with this id had this isbn before the import."""
        self.has_changes = True
        self.remember(RecordKey.FORMER_ISBN, isbn, pk)
        self.remember(RecordKey.FORMER_ISBN13, normalize_isbn(isbn), pk)
        self.remember(RecordKey.CHANGED_BOOK, pk, pk)

    def load_former(self) -> None:
        """Reads from the history which isbns the import has changed, before another worker goes on with it."""
        if self.operation_id is None:
            return
        rows = Change.objects.filter(operation=self.operation_id, kind=Change.Kind.CHANGED, before__has_key="isbn")
        for pk, before in rows.values_list("book_id", "before").iterator(chunk_size=1_000):
            self.remember_former(pk, (before or {})["isbn"])
        self.store(self.batch)

    def find_added(self, pks: Collection[int]) -> set[int]:
        """Returns which of these books the import has added."""
        if self.operation_id is None or not pks:
            return set()
        # The version leads along an index; an operation has none.
        rows = Change.objects.filter(book_id__in=pks, version=1).values_list("book_id", "operation")
        return {pk for pk, operation_id in rows if operation_id == self.operation_id}
