"""The books of another library, kept here as they are there, by the events that it sends."""

from datetime import datetime
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.serializers import Serializer

from books import changes
from books.events import CREATED, DELETED, UPDATED
from books.exchange.imports import format_errors
from books.models import MirroredBook
from books.serializers import NewBookSerializer
from library_site.api.serializers import StrictBooleanField, StrictIntegerField
from library_site.db.integers import BIGINT_MAX
from webhooks.inbox import register_handler
from webhooks.models import Received, Source


class InvalidBookEvent(Exception):
    """The event tells of no book that can be kept; the text says why."""


class MirroredIdSerializer(Serializer[Any]):
    """Which book an event is about, and in what state that was."""

    id = StrictIntegerField(min_value=-BIGINT_MAX, max_value=BIGINT_MAX)
    version = StrictIntegerField(min_value=0, max_value=BIGINT_MAX)


class MirroredBookSerializer(MirroredIdSerializer, NewBookSerializer):
    """A book as its library tells of it; what it shows beyond that is no affair of ours."""

    available = StrictBooleanField()

    class Meta(NewBookSerializer.Meta):
        fields = (*NewBookSerializer.Meta.fields, "available", "id", "version")


id_serializer, book_serializer = MirroredIdSerializer(), MirroredBookSerializer()


@register_handler(CREATED, UPDATED)
def mirror_change(received: Received, body: dict[str, Any], now: datetime) -> None:
    """Adds or changes a book, unless a later event of it was here before.

    Raises NoBook, IsbnInUse, BookNotFound, ChangedMeanwhile.
    """
    if not received.source.mirrors:
        return
    values = read_book(book_serializer, body)
    remote_id, version = values.pop("id"), values.pop("version")
    mirrored = lock_mirrored(received.source, remote_id)
    if mirrored is None:
        book = changes.add_book(values, now, quietly=True)
        MirroredBook.objects.create(source=received.source, remote_id=remote_id, book=book, version=version)
    elif mirrored.book_id and mirrored.version < version:
        changes.apply_change(changes.lock_book(mirrored.book_id), values, now, quietly=True)
        mirrored.version = version
        mirrored.save(update_fields=["version"])


@register_handler(DELETED)
def mirror_deletion(received: Received, body: dict[str, Any], now: datetime) -> None:
    """Removes a book for good: libraries give no id out twice. Raises NoBook, BookNotFound, ChangedMeanwhile."""
    if not received.source.mirrors:
        return
    values = read_book(id_serializer, body)
    mirrored = lock_mirrored(received.source, values["id"])
    # Before the book, which would take its row along.
    MirroredBook.objects.update_or_create(
        source=received.source, remote_id=values["id"], defaults={"book": None, "version": values["version"]}
    )
    if mirrored and mirrored.book_id:
        changes.delete_book(changes.lock_book(mirrored.book_id), now, quietly=True)


def lock_mirrored(source: Source, remote_id: int) -> MirroredBook | None:
    """What is known of a book, which no other event of its library changes before this transaction ends."""
    # Its library rather than itself: it may not be there yet. Others may still refer to the row.
    Source.objects.select_for_update(no_key=True).get(pk=source.pk)
    return MirroredBook.objects.filter(source=source, remote_id=remote_id).first()


def read_book(serializer: Serializer[Any], body: dict[str, Any]) -> dict[str, Any]:
    """Raises NoBook."""
    data = body.get("data")
    book = data.get("book") if isinstance(data, dict) else None
    if not isinstance(book, dict):
        raise InvalidBookEvent("data.book is no object.")
    try:
        values: dict[str, Any] = serializer.run_validation(book)
    except ValidationError as error:
        raise InvalidBookEvent(format_errors(error)) from error
    return values
