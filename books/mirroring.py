"""The books of another library, kept here as they are there, by the events that it sends."""

from datetime import datetime
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.serializers import Serializer

from books import changes
from books.exchange.imports import reason
from books.models import MirroredBook
from books.serializers import Flag, Integer, NewBookSerializer
from library_site.db.integers import LARGEST
from webhooks.inbox import handles
from webhooks.models import Received, Source
from webhooks.registry import CREATED, DELETED, UPDATED


class NoBook(Exception):
    """The event tells of no book that can be kept; the text says why."""


class ToldSerializer(Serializer[Any]):
    """Which book an event is about, and in what state that was."""

    id = Integer(min_value=-LARGEST, max_value=LARGEST)
    version = Integer(min_value=0, max_value=LARGEST)


class ToldBookSerializer(ToldSerializer, NewBookSerializer):
    """A book as its library tells of it; what it shows beyond that is no affair of ours."""

    available = Flag()

    class Meta(NewBookSerializer.Meta):
        fields = (*NewBookSerializer.Meta.fields, "available", "id", "version")


told, told_book = ToldSerializer(), ToldBookSerializer()


@handles(CREATED, UPDATED)
def mirror(received: Received, body: dict[str, Any], now: datetime) -> None:
    """Adds or changes a book, unless a later event of it was here before.

    Raises NoBook, IsbnInUse, BookNotFound, ChangedMeanwhile.
    """
    if not received.source.mirrors:
        return
    values = read(told_book, body)
    remote_id, version = values.pop("id"), values.pop("version")
    mirrored = locked(received.source, remote_id)
    if mirrored is None:
        book = changes.add(values, now, quietly=True)
        MirroredBook.objects.create(source=received.source, remote_id=remote_id, book=book, version=version)
    elif mirrored.book_id and mirrored.version < version:
        changes.change(changes.locked(mirrored.book_id), values, now, quietly=True)
        mirrored.version = version
        mirrored.save(update_fields=["version"])


@handles(DELETED)
def unmirror(received: Received, body: dict[str, Any], now: datetime) -> None:
    """Removes a book for good: libraries give no id out twice. Raises NoBook, BookNotFound, ChangedMeanwhile."""
    if not received.source.mirrors:
        return
    values = read(told, body)
    mirrored = locked(received.source, values["id"])
    # Before the book, which would take its row along.
    MirroredBook.objects.update_or_create(
        source=received.source, remote_id=values["id"], defaults={"book": None, "version": values["version"]}
    )
    if mirrored and mirrored.book_id:
        changes.remove(changes.locked(mirrored.book_id), now, quietly=True)


def locked(source: Source, remote_id: int) -> MirroredBook | None:
    """What is known of a book, which no other event of its library changes before this transaction ends."""
    # Its library rather than itself: it may not be there yet. Others may still refer to the row.
    Source.objects.select_for_update(no_key=True).get(pk=source.pk)
    return MirroredBook.objects.filter(source=source, remote_id=remote_id).first()


def read(serializer: Serializer[Any], body: dict[str, Any]) -> dict[str, Any]:
    """Raises NoBook."""
    data = body.get("data")
    book = data.get("book") if isinstance(data, dict) else None
    if not isinstance(book, dict):
        raise NoBook("data.book is no object.")
    try:
        values: dict[str, Any] = serializer.run_validation(book)
    except ValidationError as error:
        raise NoBook(reason(error)) from error
    return values
