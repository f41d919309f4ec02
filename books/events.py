"""The kinds of events about books, and their data: the book, and the previous values of the members that changed."""

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

BOOK_CREATED = register_kind("book.created", "A book was added.", "books.api.v2.schema.CREATED_EVENT")
BOOK_UPDATED = register_kind("book.updated", "A book was changed.", "books.api.v2.schema.UPDATED_EVENT")
BOOK_DELETED = register_kind("book.deleted", "A book was deleted.", "books.api.v2.schema.DELETED_EVENT")

# The representation of a book in the latest API version. A setting names it, and it is imported when it is first used:
# `books.api` may import this module, but this module may not import `books.api`.
event_representation: Representation = SimpleLazyObject(lambda: import_string(settings.EVENT_REPRESENTATION))  # type: ignore[assignment]  # the lazy object behaves like it
# Every change changes these members, so events do not list them in `previous`.
ALWAYS_CHANGED = {"updated_at", "version"}


def created_event(book: Book) -> EventData:
    return make_event(BOOK_CREATED, book, {})


def created_data_parts(book: Book) -> tuple[bytes, bytes]:
    """The data of `created_event` as JSON in two parts. The id, which a new book may not have yet, goes between."""
    members = msgspec.structs.asdict(event_representation.to_struct(book))
    del members["id"]
    rest = encode_json(members).removeprefix(b"{")
    return b'{"book":{"id":', b',%b,"previous":{}}' % rest


def updated_event(book: Book, previous_row: Row) -> EventData:
    """`previous_row` is the `book_row` of the book before its change."""
    members = zip(event_representation.members, previous_row, book_row(book), strict=True)
    previous = {name: old for name, old, new in members if old != new and name not in ALWAYS_CHANGED}
    return make_event(BOOK_UPDATED, book, previous)


def deleted_event(book: Book) -> EventData:
    """To be called before the book is deleted, because Django then removes the id from the object."""
    return make_event(BOOK_DELETED, book, {})


def make_event(kind: str, book: Book, previous: dict[str, Any]) -> EventData:
    return EventData(kind, book.pk, {"book": event_representation.to_struct(book), "previous": previous})


def book_row(book: Book) -> Row:
    return event_representation.to_row(book)
