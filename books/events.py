"""What events tell of books: the book as the latest version shows it, and what its members were before."""

from typing import Any

import msgspec
from django.conf import settings
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string

from books.models import Book
from books.read_model import Representation
from library_site.api.responses import encode_json
from library_site.db.sql import Row
from webhooks.outbox import EventData
from webhooks.registry import register_kind

CREATED = register_kind("book.created", "A book was added.", "books.api.v2.schema.CREATED_EVENT")
UPDATED = register_kind("book.updated", "A book was changed.", "books.api.v2.schema.UPDATED_EVENT")
DELETED = register_kind("book.deleted", "A book was deleted.", "books.api.v2.schema.DELETED_EVENT")

# Of an upper layer.
event_representation: Representation = SimpleLazyObject(lambda: import_string(settings.EVENT_REPRESENTATION))  # type: ignore[assignment]  # stands for it
# Every change changes them.
ALWAYS_CHANGED = {"updated_at", "version"}


def created_event(book: Book) -> EventData:
    return make_event(CREATED, book, {})


def created_data_parts(book: Book) -> tuple[bytes, bytes]:
    """The data of `created_event` as JSON in two parts, between which the id belongs. The book may have none yet."""
    members = msgspec.structs.asdict(event_representation.to_struct(book))
    del members["id"]
    rest = encode_json(members).removeprefix(b"{")
    return b'{"book":{"id":', b',%b,"previous":{}}' % rest


def updated_event(book: Book, before: Row) -> EventData:
    """`before` is `row` of the book as it was."""
    pairs = zip(event_representation.members, before, book_row(book), strict=True)
    previous = {name: old for name, old, new in pairs if old != new and name not in ALWAYS_CHANGED}
    return make_event(UPDATED, book, previous)


def deleted_event(book: Book) -> EventData:
    """Django takes the id away from an object that it deletes: made before."""
    return make_event(DELETED, book, {})


def make_event(kind: str, book: Book, previous: dict[str, Any]) -> EventData:
    return EventData(kind, book.pk, {"book": event_representation.to_struct(book), "previous": previous})


def book_row(book: Book) -> Row:
    return event_representation.to_row(book)
