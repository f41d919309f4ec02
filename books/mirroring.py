"""Keeps copies of the books of another library, by the events that it sends."""

from datetime import datetime
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.serializers import Serializer

from books import changes
from books.events import BOOK_CREATED, BOOK_DELETED, BOOK_UPDATED
from books.exchange.imports import format_errors
from books.history.actors import ActorRef, find_actor
from books.models import Actor, MirroredBook
from books.serializers import NewBookSerializer
from library_site.api.serializers import StrictBooleanField, StrictIntegerField
from library_site.db.integers import BIGINT_MAX
from webhooks.inbox import register_handler
from webhooks.models import Received, Source


class InvalidBookEvent(Exception):
    """The event has no valid book; the message says why."""


class MirroredIdSerializer(Serializer[Any]):
    """The id and the version of the book that an event is about."""

    id = StrictIntegerField(min_value=-BIGINT_MAX, max_value=BIGINT_MAX)
    version = StrictIntegerField(min_value=0, max_value=BIGINT_MAX)


class MirroredBookSerializer(MirroredIdSerializer, NewBookSerializer):
    """A book in an event of another library. Its other members are ignored."""

    available = StrictBooleanField()

    class Meta(NewBookSerializer.Meta):
        fields = (*NewBookSerializer.Meta.fields, "available", "id", "version")


id_serializer, book_serializer = MirroredIdSerializer(), MirroredBookSerializer()


@register_handler(BOOK_CREATED, BOOK_UPDATED)
def mirror_change(received: Received, body: dict[str, Any], now: datetime) -> None:
    """Adds or changes a book, unless a later event about it was handled before.

    Raises InvalidBookEvent, IsbnInUse, BookNotFound, ConcurrentChange.
    """
    if not received.source.mirrors:
        return
    values = parse_book_event(book_serializer, body)
    remote_id, version = values.pop("id"), values.pop("version")
    mirrored_book = lock_mirrored_book(received.source, remote_id)
    if mirrored_book is None:
        book = changes.add_book(values, find_source_actor(received), now, announce=False)
        MirroredBook.objects.create(source=received.source, remote_id=remote_id, book_id=book.id, version=version)
    elif mirrored_book.book_id and mirrored_book.version < version:
        changes.apply_change(
            changes.lock_book(mirrored_book.book_id), values, find_source_actor(received), now, announce=False
        )
        mirrored_book.version = version
        mirrored_book.save(update_fields=["version"])


@register_handler(BOOK_DELETED)
def mirror_deletion(received: Received, body: dict[str, Any], now: datetime) -> None:
    """Deletes a book and remembers its id, which no library gives to another book.

    Raises InvalidBookEvent, BookNotFound, ConcurrentChange.
    """
    if not received.source.mirrors:
        return
    values = parse_book_event(id_serializer, body)
    mirrored_book = lock_mirrored_book(received.source, values["id"])
    # First, because deleting the book would delete a row that refers to it.
    MirroredBook.objects.update_or_create(
        source=received.source, remote_id=values["id"], defaults={"book": None, "version": values["version"]}
    )
    if mirrored_book and mirrored_book.book_id:
        book = changes.lock_book(mirrored_book.book_id)
        changes.delete_book(book, find_source_actor(received), now, announce=False)


def find_source_actor(received: Received) -> ActorRef:
    return find_actor(Actor.Channel.MIRROR, source_id=received.source_id)


def lock_mirrored_book(source: Source, remote_id: int) -> MirroredBook | None:
    """The row of a book, or None. No other event of its library changes it before this transaction ends."""
    # Locks the source, since the book may have no row yet. Other transactions may still refer to the source.
    Source.objects.select_for_update(no_key=True).get(pk=source.pk)
    return MirroredBook.objects.filter(source=source, remote_id=remote_id).first()


def parse_book_event(serializer: Serializer[Any], body: dict[str, Any]) -> dict[str, Any]:
    """The values of the book in an event. Raises InvalidBookEvent."""
    data = body.get("data")
    book = data.get("book") if isinstance(data, dict) else None
    if not isinstance(book, dict):
        raise InvalidBookEvent("data.book is no object.")
    try:
        values: dict[str, Any] = serializer.run_validation(book)
    except ValidationError as error:
        raise InvalidBookEvent(format_errors(error)) from error
    return values
