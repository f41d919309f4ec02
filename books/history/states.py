"""Computes earlier states of a book from its current state and its history."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from books.book.fields import FIELDS
from books.book_values import BookValues, make_row
from books.models import Book, Change
from library_site.http.api_errors import APIError, ErrorContent, FieldError

# A book does not exist at the version of such a change. Its `before` contains the whole book.
DELETIONS = frozenset({Change.Kind.DELETED, Change.Kind.MERGED})

# The largest value of the column.
MAX_VERSION = 2**31 - 1


class UnknownVersion(APIError):
    """The book never had this version, or its history does not go back that far."""

    status_code = 422
    default_detail = "The request is not valid"

    def get_content(self, request: object) -> ErrorContent:
        message = "No state of the book with this version is known."
        return ErrorContent(
            self.status_code, self.default_detail, [FieldError("body", "version", message, "unknown_version")]
        )


class BookState(NamedTuple):
    version: int
    fields: dict[str, Any]


def find_state(book_id: int, version: int) -> dict[str, Any]:
    """Returns the fields of a book at this version, also if it is deleted now.

    It takes the current book, or the book before its next deletion, and undoes the changes after the version. Raises
    UnknownVersion, also for the version of a deletion.
    """
    state, changes = find_present_state(book_id), []
    for step in Change.objects.filter(book_id=book_id, version__gt=version).order_by("version"):
        if step.kind in DELETIONS:
            state = BookState(step.version - 1, {name: (step.before or {})[name] for name in FIELDS})
            break
        changes.append(step)
    # The book may have changed since it was read.
    return undo_changes(state, [step for step in changes if step.version <= state.version], version)


def undo_changes(state: BookState, changes: list[Change], version: int) -> dict[str, Any]:
    """Undoes the changes after the version, newest first. Raises UnknownVersion if one is missing."""
    is_complete = 0 < version == state.version - len(changes)
    if not is_complete or any(step.kind != Change.Kind.CHANGED for step in changes):
        raise UnknownVersion
    fields = dict(state.fields)
    for step in reversed(changes):
        fields |= step.before or {}
    return fields


def find_present_state(book_id: int) -> BookState:
    """Returns version 0 if the book does not exist."""
    rows = Book.objects.filter(pk=book_id).values_list("version", *FIELDS)
    return next((BookState(row[0], dict(zip(FIELDS, row[1:], strict=True))) for row in rows), BookState(0, {}))


def read_deleted_book(pk: int, now: datetime) -> BookValues | None:
    """Returns a deleted book as it would be restored; None if its last known change is not a deletion."""
    last = Change.objects.filter(book_id=pk).order_by("-version").first()
    if last is None or last.kind not in DELETIONS:
        return None
    return build_deleted_book(last, now)


def read_creation_time(deletion: Change) -> datetime:
    return datetime.fromisoformat((deletion.before or {})["created_at"]).replace(tzinfo=UTC)


def build_deleted_book(deletion: Change, now: datetime) -> BookValues:
    """Returns the book as it would be restored if nothing came after this deletion."""
    fields = deletion.before or {}
    values = {**fields, "created_at": read_creation_time(deletion)}
    return make_row(values, now)._replace(id=deletion.book_id, version=deletion.version + 1)
