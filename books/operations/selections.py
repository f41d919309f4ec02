"""The books that an operation is about: a filter, which is applied again when their turn comes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import QuerySet

from books.models import Book
from books.rows import BookRow
from books.writing import changes

# The number of ids that are read ahead: for a filter without an index, each reading costs a pass over the table.
READ_AHEAD = 5_000


# Returns the books that match the values of a form's fields.
Select = Callable[[Mapping[str, str]], QuerySet[Book]]
SELECTIONS: dict[str, Select] = {}


def register_selection(form: str) -> Callable[[Select], Select]:
    """Registers how a form of filters chooses books: operations store its name."""

    def register(select: Select) -> Select:
        SELECTIONS[form] = select
        return select

    return register


class StoredFilter(NamedTuple):
    """A filter as it is stored: a form of SELECTIONS, and the values of its fields."""

    form: str
    values: Mapping[str, str]

    def list_books(self) -> QuerySet[Book]:
        """Not to be kept for long: on SQLite the condition may name the books that match now."""
        return SELECTIONS[self.form](self.values)

    def to_parameters(self) -> dict[str, Any]:
        return {"form": self.form, "values": dict(self.values)}


def read_stored_filter(parameters: Mapping[str, Any]) -> StoredFilter:
    """Returns what `to_parameters` stored."""
    return StoredFilter(parameters["form"], parameters["values"])


class BookKey(NamedTuple):
    """A book that matched when it was read, at this version."""

    id: int
    version: int


class SelectionReader:
    """Reads the keys of the books of a selection in the order of their ids, many at a time."""

    def __init__(self) -> None:
        self.keys: list[BookKey] = []

    def read(self, selection: StoredFilter, cursor: int, last: int, limit: int) -> list[BookKey]:
        """Returns at most so many keys beyond the cursor."""
        self.keys = [key for key in self.keys if key.id > cursor]
        if not self.keys:
            books = selection.list_books().filter(pk__gt=cursor, pk__lte=last).order_by("pk")
            self.keys = [BookKey(*row) for row in books.values_list("pk", "version")[:READ_AHEAD]]
        return self.keys[:limit]


def lock_matching(selection: StoredFilter, keys: Sequence[BookKey]) -> dict[int, BookRow]:
    """Locks those of the books that still match, and returns them by id.

    A book at the version that was read still matches. The others are looked at again. Raises ConcurrentChange.
    """
    books = changes.lock_books([key.id for key in keys])
    changed_ids = [key.id for key in keys if key.id in books and books[key.id].version != key.version]
    if changed_ids:
        matching_ids = set(selection.list_books().filter(pk__in=changed_ids).values_list("pk", flat=True))
        for pk in set(changed_ids) - matching_ids:
            del books[pk]
    return books
