"""The books of an operation: a filter, which is applied again before each batch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import QuerySet

from books.book_values import BookValues
from books.models import Book
from books.writing import changes

# The number of ids to read ahead. For a filter without an index, each read scans the table.
READ_AHEAD = 5_000


# Returns the books that match the values of a form's fields.
Select = Callable[[Mapping[str, str]], QuerySet[Book]]
SELECTIONS: dict[str, Select] = {}


def register_selection(form: str) -> Callable[[Select], Select]:
    """Registers a filter form under a name, with the function that selects its books. Operations store the name."""

    def register(select: Select) -> Select:
        SELECTIONS[form] = select
        return select

    return register


class StoredFilter(NamedTuple):
    """A stored filter: a form of SELECTIONS, and the values of its fields."""

    form: str
    values: Mapping[str, str]

    def list_books(self) -> QuerySet[Book]:
        """Use it at once: on SQLite the condition may contain the ids of the books that match now."""
        return SELECTIONS[self.form](self.values)

    def to_parameters(self) -> dict[str, Any]:
        return {"form": self.form, "values": dict(self.values)}


def read_stored_filter(parameters: Mapping[str, Any]) -> StoredFilter:
    """Parses the result of `to_parameters`."""
    return StoredFilter(parameters["form"], parameters["values"])


class BookKey(NamedTuple):
    """The id and the version of a book that matched when it was read."""

    id: int
    version: int


class SelectionReader:
    """Reads the ids and versions of the selected books in the order of their ids, many at a time."""

    def __init__(self) -> None:
        self.keys: list[BookKey] = []

    def read(self, selection: StoredFilter, cursor: int, last: int, limit: int) -> list[BookKey]:
        """Returns at most so many keys after the cursor."""
        self.keys = [key for key in self.keys if key.id > cursor]
        if not self.keys:
            books = selection.list_books().filter(pk__gt=cursor, pk__lte=last).order_by("pk")
            self.keys = [BookKey(*row) for row in books.values_list("pk", "version")[:READ_AHEAD]]
        return self.keys[:limit]


def lock_matching(selection: StoredFilter, keys: Sequence[BookKey]) -> dict[int, BookValues]:
    """Locks those of the books that still match, and returns them by id.

    A book whose version did not change still matches. The others are checked again. Raises ConcurrentChange.
    """
    books = changes.lock_books([key.id for key in keys])
    changed_ids = [key.id for key in keys if key.id in books and books[key.id].version != key.version]
    if changed_ids:
        matching_ids = set(selection.list_books().filter(pk__in=changed_ids).values_list("pk", flat=True))
        for pk in set(changed_ids) - matching_ids:
            del books[pk]
    return books
