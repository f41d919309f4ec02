"""Merges two duplicates, field by field. Both histories stay."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from books.history.actors import ActorRef, record_operation
from books.models import Operation
from books.writing import changes
from books.writing.changes import BookNotFound, ConcurrentChange

MERGE = "merge"


def merge_books(
    kept_id: int, versions: Mapping[int, int], sources: Mapping[str, int], actor: ActorRef, now: datetime
) -> int:
    """Keeps one of two books, and deletes the other as merged into it. Returns the id of the operation.

    `versions` maps both ids to the versions that the user saw. `sources` maps each field to the id of the book whose
    value is kept. Raises BookNotFound, ConcurrentChange.
    """
    [other_id] = versions.keys() - {kept_id}
    with transaction.atomic():
        operation = record_operation(MERGE, actor, now)
        books = changes.lock_books(versions)
        if len(books) < len(versions):
            raise BookNotFound
        if any(book.version != versions[book.id] for book in books.values()):
            raise ConcurrentChange
        changes.delete_books([books[other_id]], operation, now, merged_into=kept_id)
        # The isbn of the other book is free now.
        values = {field: getattr(books[pk], field) for field, pk in sources.items() if pk != kept_id}
        merged_book = changes.change_book(kept_id, values, None, operation, now, read_book=books[kept_id])
        changed = 1 + (merged_book.version > books[kept_id].version)
        counts = {"matched": 2, "changed": changed, "unchanged": 2 - changed, "refused": 0, "missed": 0}
        Operation.objects.filter(pk=operation.operation_id or 0).update(**counts)
    return operation.operation_id or 0
