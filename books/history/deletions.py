"""Reads pages of the books that are deleted."""

from books.history.entries import Condition, Entry, IndexRange, Order, read_range
from books.models import Change
from library_site.db.keyset import Page, Start

# A book with a later change was restored.
IS_LAST = Condition(
    "NOT EXISTS (SELECT 1 FROM books_change later WHERE later.book_id = scanned.book_id"
    " AND later.version > scanned.version)"
)


def read_deleted_page(start: Start, limit: int) -> Page[Entry]:
    """Returns a page of the deletions of books that are still deleted."""
    order = Order(("at", "id"), start)
    kind = Condition("kind = %s", (Change.Kind.DELETED.value,))
    scan = IndexRange([[kind, *order.build_conditions()]], [IS_LAST])
    return read_range(scan, order, limit)
