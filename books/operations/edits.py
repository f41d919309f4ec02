"""Edits and deletions of the books of a selection."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, Max

from books.history.actors import ActorRef, begin_operation
from books.members import MAX_LENGTHS, MEMBERS
from books.models import Operation, OperationProblem
from books.operations.selections import BookKey, SelectionReader, StoredFilter, lock_matching, read_stored_filter
from books.operations.tasks import Batch, BatchCounts, Plan, RefusedItem, register_task
from books.rows import BookRow
from books.writing import changes
from library_site.db.integers import BIGINT_MAX

EDIT, DELETE = "edit", "delete"
# Of edits of more books than these, events can be left out.
MAX_ANNOUNCED_ALWAYS = 1_000
# Books that get another ISBN are written one by one.
ISBN_BATCH = 50
Reason = OperationProblem.Reason


class InvalidEdit(Exception):
    """The edit would make a member of a book blank or too long."""


class Edit(NamedTuple):
    """New values of members, or a text to be replaced wherever a member has it. Both compare exactly."""

    values: Mapping[str, Any]
    member: str = ""
    find: str = ""
    replacement: str = ""

    def to_parameters(self) -> dict[str, Any]:
        if not self.member:
            return {"set": dict(self.values)}
        return {"replace": {"member": self.member, "find": self.find, "with": self.replacement}}

    def list_members(self) -> list[str]:
        return [self.member] if self.member else list(self.values)

    def build_values(self, book: BookRow) -> Mapping[str, Any]:
        """Returns the new values of the book's members. Raises InvalidEdit."""
        if not self.member:
            return self.values
        text: str = getattr(book, self.member)
        new_text = text.replace(self.find, self.replacement)
        if new_text != text and not 0 < len(new_text.strip()) <= len(new_text) <= MAX_LENGTHS[self.member]:
            raise InvalidEdit
        return {self.member: new_text}


def read_edit(parameters: Mapping[str, Any]) -> Edit:
    """Returns what `to_parameters` stored."""
    if "set" in parameters:
        return Edit(parameters["set"])
    replace = parameters["replace"]
    return Edit({}, replace["member"], replace["find"], replace["with"])


def is_announced(operation: Operation) -> bool:
    """Whether the changes of an operation have events. Only large ones can do without."""
    wants_events: bool = (operation.parameters or {}).get("events", True)
    return wants_events or (operation.matched or 0) <= MAX_ANNOUNCED_ALWAYS


class SelectionTask:
    """Does something with each book of a selection. `batch_limit` is the most books of a batch."""

    def __init__(self) -> None:
        self.reader = SelectionReader()

    def plan(self, operation: Operation) -> Plan:
        totals = get_selection(operation).list_books().order_by().aggregate(matched=Count("pk"), last=Max("pk"))
        return Plan(totals["matched"], -BIGINT_MAX, totals["last"] or 0)

    def read_batch(self, operation: Operation, limit: int) -> Batch:
        cursor, last = operation.cursor or 0, operation.last or 0
        keys = self.reader.read(get_selection(operation), cursor, last, self.limit_batch(operation, limit))
        # The last of the books may be gone.
        return Batch(keys[-1].id if keys else last, keys)

    def limit_batch(self, operation: Operation, limit: int) -> int:
        return limit

    def write_batch(self, operation: Operation, batch: Batch, actor: ActorRef, now: datetime) -> BatchCounts:
        keys: Sequence[BookKey] = batch.items
        books = lock_matching(get_selection(operation), keys)
        missed = [RefusedItem(key.id, Reason.NO_MATCH) for key in keys if key.id not in books]
        counts = self.write_books(operation, list(books.values()), actor, now)
        return counts._replace(missed=len(missed), refused_items=[*missed, *counts.refused_items])

    def require_complete(self, operation: Operation) -> None:
        """Nothing can be missing: the cursor only moves with the books."""

    def write_books(
        self, operation: Operation, books: Sequence[BookRow], actor: ActorRef, now: datetime
    ) -> BatchCounts:
        """Changes locked books."""
        raise NotImplementedError


@register_task(DELETE)
class DeleteTask(SelectionTask):
    def write_books(
        self, operation: Operation, books: Sequence[BookRow], actor: ActorRef, now: datetime
    ) -> BatchCounts:
        if books:
            changes.delete_books(books, actor, now, is_announced(operation))
        return BatchCounts(len(books))


@register_task(EDIT)
class EditTask(SelectionTask):
    def limit_batch(self, operation: Operation, limit: int) -> int:
        has_isbn = "isbn" in read_edit(operation.parameters or {}).list_members()
        return min(limit, ISBN_BATCH) if has_isbn else limit

    def write_books(
        self, operation: Operation, books: Sequence[BookRow], actor: ActorRef, now: datetime
    ) -> BatchCounts:
        edit = read_edit(operation.parameters or {})
        refused_items, pairs = [], []
        for book in books:
            try:
                columns = book.find_changes(edit.build_values(book), now)
            except InvalidEdit:
                refused_items.append(RefusedItem(book.id, Reason.INVALID))
            else:
                pairs += [(book, book._replace(**columns))] if columns else []
        refused = write_pairs(pairs, actor, now, is_announced(operation))
        unchanged = len(books) - len(pairs) - len(refused_items)
        refused_items += [RefusedItem(pk, Reason.ISBN_IN_USE) for pk in refused]
        return BatchCounts(len(pairs) - len(refused), unchanged, len(refused_items), refused_items=refused_items)


@transaction.atomic
def run_small_operation(
    kind: str, task: SelectionTask, parameters: Mapping[str, Any], pks: Collection[int], actor: ActorRef, now: datetime
) -> Operation:
    """Does a task with these books in one transaction, so they must be few. Returns the operation, which is done.

    Raises ConcurrentChange.
    """
    actor = begin_operation(kind, actor, now)
    operation = Operation.objects.get(pk=actor.operation_id or 0)
    operation.parameters, operation.matched = dict(parameters), len(pks)
    counts = task.write_books(operation, list(changes.lock_books(pks).values()), actor, now)
    numbers = {"matched": len(pks), "changed": counts.changed, "unchanged": len(pks) - counts.changed}
    Operation.objects.filter(pk=operation.pk).update(**numbers, refused=0, missed=0)
    operation.changed = counts.changed
    return operation


def write_pairs(pairs: Sequence[tuple[BookRow, BookRow]], actor: ActorRef, now: datetime, announce: bool) -> list[int]:
    """Writes locked books: each as it is and as it is to be. Returns the ids of those whose new isbn is in use."""
    together = [pair for pair in pairs if pair[0].isbn == pair[1].isbn]
    if together:
        changes.change_books(together, actor, now, announce)
    others = [pair for pair in pairs if pair[0].isbn != pair[1].isbn]
    return [old.id for old, new in others if not write_with_isbn(old, new, actor, now, announce)]


def write_with_isbn(book: BookRow, changed_book: BookRow, actor: ActorRef, now: datetime, announce: bool) -> bool:
    """Returns false if another book has the isbn."""
    try:
        with transaction.atomic():
            changes.change_locked_book(book, pick_members(changed_book), actor, now, announce)
    except changes.IsbnInUse:
        return False
    return True


def pick_members(book: BookRow) -> dict[str, Any]:
    return {name: getattr(book, name) for name in MEMBERS}


def get_selection(operation: Operation) -> StoredFilter:
    return read_stored_filter((operation.parameters or {})["filter"])
