"""The books of an operation: a filter, which is applied again before each batch."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from django.db.models import QuerySet

from books.book_values import BookValues
from books.models import Book, Operation
from books.writing import changes

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


def get_selection(operation: Operation) -> StoredFilter:
    return StoredFilter(**(operation.parameters or {})["filter"])


def lock_matching(selection: StoredFilter, versions: Mapping[int, int]) -> dict[int, BookValues]:
    """Locks those of the books that still match, and returns them by id. `versions` are those at which they matched.

    A book whose version did not change still matches. The others are checked again. Raises ConcurrentChange.
    """
    books = changes.lock_books(versions)
    changed_ids = [pk for pk, book in books.items() if book.version != versions[pk]]
    if changed_ids:
        matching_ids = set(selection.list_books().filter(pk__in=changed_ids).values_list("pk", flat=True))
        for pk in set(changed_ids) - matching_ids:
            del books[pk]
    return books
