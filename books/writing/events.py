"""The kinds of events about books, and their data: the book, and the previous values of the changed fields."""

from functools import cache
from typing import Any

from django.utils.translation import gettext_noop

from books.book_values import BookValues
from books.read_model import BookEncoder
from books.serializers import BOOK_EXAMPLE, BOOK_SCHEMA, BookSerializer
from webhooks.outbox import EventData
from webhooks.registry import register_kind

PAYLOAD = {
    "type": "object",
    "properties": {
        "book": BOOK_SCHEMA,
        "previous": {"type": "object", "description": "The old values of the members that changed."},
    },
    "required": ["book", "previous"],
}
EXAMPLE = {"book": BOOK_EXAMPLE, "previous": {}}
LENT_EXAMPLE = {"book": {**BOOK_EXAMPLE, "available": False, "version": 2}, "previous": {"available": True}}
BOOK_CREATED = register_kind("book.created", gettext_noop("A book was added or restored."), PAYLOAD, EXAMPLE)
BOOK_UPDATED = register_kind("book.updated", gettext_noop("A book was changed."), PAYLOAD, LENT_EXAMPLE)
BOOK_DELETED = register_kind("book.deleted", gettext_noop("A book was deleted."), PAYLOAD, EXAMPLE)

# Every change sets these fields, so events do not list them in `previous`.
ALWAYS_CHANGED = {"updated_at", "version"}


@cache
def get_encoder() -> BookEncoder:
    """Returns that of EVENT_API_VERSION."""
    return BookEncoder(BookSerializer)


def created_event(book: BookValues) -> EventData:
    return make_event(BOOK_CREATED, book, {})


def updated_event(previous: BookValues, book: BookValues) -> EventData:
    """`previous` is the book before its change."""
    encoder = get_encoder()
    rows = zip(encoder.names, encoder.to_row(previous), encoder.to_row(book), strict=True)
    changed_fields = {name: old for name, old, new in rows if old != new and name not in ALWAYS_CHANGED}
    return make_event(BOOK_UPDATED, book, changed_fields)


def deleted_event(book: BookValues) -> EventData:
    return make_event(BOOK_DELETED, book, {})


def make_event(kind: str, book: BookValues, previous: dict[str, Any]) -> EventData:
    return EventData(kind, book.id, {"book": get_encoder().to_struct(book), "previous": previous})
