"""The states that a book had, computed from its present state and its history."""

from datetime import datetime

from books.models import Change
from books.rows import BookRow, make_row
from library_site.db.integers import BIGINT_MAX


def read_deleted_book(pk: int, now: datetime) -> BookRow | None:
    """Returns a deleted book as it would be restored now; None if the history knows of no deletion."""
    if abs(pk) > BIGINT_MAX:
        return None
    deletion = Change.objects.filter(book_id=pk, kind=Change.Kind.DELETED).order_by("-version").first()
    if deletion is None:
        return None
    members = deletion.before or {}
    values = {**members, "created_at": datetime.fromisoformat(members["created_at"])}
    return make_row(values, now)._replace(id=pk, version=deletion.version + 1)
