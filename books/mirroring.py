"""Keeps copies of the books of another library. The other library sends events about its books."""

from contextlib import suppress
from datetime import datetime
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.serializers import Serializer

from books.book_fields import FIELDS
from books.book_values import BookValues
from books.files.parsing import format_errors
from books.history.actors import ActorRef, get_or_create_actor
from books.models import Actor, MirroredBook
from books.serializers import NewBookSerializer
from books.writing import changes
from books.writing.changes import BookNotFound
from books.writing.events import BOOK_CREATED, BOOK_DELETED, BOOK_UPDATED
from library_site.api.serializers import StrictBooleanField, StrictIntegerField
from library_site.db.integers import BIGINT_MAX
from webhooks.inbox import register_handler
from webhooks.models import Received, Source

# The version of a book without any handled event.
UNKNOWN_VERSION = -1


class InvalidBookEvent(Exception):
    """The event has no valid book; the message says why."""


class MirroredIdSerializer(Serializer[Any]):
    """The id and the version of the event's book."""

    id = StrictIntegerField(min_value=-BIGINT_MAX, max_value=BIGINT_MAX)
    # A deletion increases the version.
    version = StrictIntegerField(min_value=0, max_value=BIGINT_MAX - 1)


class MirroredBookSerializer(MirroredIdSerializer, NewBookSerializer):
    """A book in an event of another library. Other fields are ignored."""

    available = StrictBooleanField()

    class Meta(NewBookSerializer.Meta):
        fields = (*FIELDS, "id", "version")


id_serializer, book_serializer = MirroredIdSerializer(), MirroredBookSerializer()


@register_handler(BOOK_CREATED, BOOK_UPDATED)
def mirror_change(received: Received, body: dict[str, Any], now: datetime) -> None:
    """Adds or changes the copy of a book, unless a later event about it was already handled.

    Raises InvalidBookEvent, IsbnInUse, BookExists, ConcurrentChange.
    """
    if not received.source.mirrors:
        return
    values = parse_book_event(book_serializer, body)
    remote_id, version = values.pop("id"), values.pop("version")
    mirrored_book = lock_mirrored_book(received.source, remote_id)
    if mirrored_book.version < version:
        book = write_copy(mirrored_book, values, find_source_actor(received), now)
        update_mirrored_book(mirrored_book, book_id=book.id, former_book_id=None, version=version)


def write_copy(mirrored_book: MirroredBook, values: dict[str, Any], actor: ActorRef, now: datetime) -> BookValues:
    """Changes the copy, restores it under its former id, or adds it.

    Raises IsbnInUse, BookExists, ConcurrentChange.
    """
    pk = get_copy_id(mirrored_book)
    if pk:
        with suppress(BookNotFound):
            return changes.change_book(pk, values, None, actor, now, announce=False)
        with suppress(BookNotFound):
            return changes.restore_book(pk, actor, now, values, announce=False)
    return changes.create_book(values, actor, now, announce=False)


def get_copy_id(mirrored_book: MirroredBook) -> int | None:
    """Returns the id of the copy. If the copy is deleted, returns its former id."""
    return mirrored_book.book_id or mirrored_book.former_book_id


@register_handler(BOOK_DELETED)
def mirror_deletion(received: Received, body: dict[str, Any], now: datetime) -> None:
    """Deletes the copy of a book, unless a later event about it was already handled.

    It stores the id even if there is no copy: a library never uses an id for another book.

    Raises InvalidBookEvent, ConcurrentChange.
    """
    if not received.source.mirrors:
        return
    values = parse_book_event(id_serializer, body)
    mirrored_book, version = lock_mirrored_book(received.source, values["id"]), values["version"] + 1
    if mirrored_book.version < version:
        delete_copy(mirrored_book, find_source_actor(received), now)
        update_mirrored_book(mirrored_book, version=version)


def delete_copy(mirrored_book: MirroredBook, actor: ActorRef, now: datetime) -> None:
    """Deletes the copy if it exists. Its row keeps the id. Raises ConcurrentChange."""
    pk = get_copy_id(mirrored_book)
    if pk:
        with suppress(BookNotFound):
            changes.delete_book(pk, None, actor, now, announce=False)


def find_source_actor(received: Received) -> ActorRef:
    return get_or_create_actor(Actor.Channel.MIRROR, source_id=received.source_id)


def lock_mirrored_book(source: Source, remote_id: int) -> MirroredBook:
    """Returns the row of a book, or a new one. No other event can change the row before this transaction ends."""
    # Locks the source, because the book may have no row yet. Other transactions may still insert references to it.
    Source.objects.select_for_update(no_key=True).get(pk=source.pk)
    mirrored_book = MirroredBook.objects.filter(source=source, remote_id=remote_id).first()
    return mirrored_book or MirroredBook(source=source, remote_id=remote_id, version=UNKNOWN_VERSION)


def update_mirrored_book(mirrored_book: MirroredBook, **columns: Any) -> None:
    """Updates only these columns. Call it after the change of the book. Deleting a book uses the same order; otherwise
    two transactions could wait for each other.
    """
    MirroredBook.objects.update_or_create(
        source=mirrored_book.source, remote_id=mirrored_book.remote_id, defaults=columns
    )


def parse_book_event(serializer: Serializer[Any], body: dict[str, Any]) -> dict[str, Any]:
    """Returns the values of the event's book. Raises InvalidBookEvent."""
    data = body.get("data")
    book = data.get("book") if isinstance(data, dict) else None
    if not isinstance(book, dict):
        raise InvalidBookEvent("data.book is no object.")
    try:
        values: dict[str, Any] = serializer.run_validation(book)
    except ValidationError as error:
        raise InvalidBookEvent(format_errors(error)) from error
    return values
