"""Undoes an operation: reverts its changes one by one, newest first.

A field that has changed since then is not reverted. The undo consists of ordinary changes, so it can be undone itself.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import ClassVar

from django.db.models import Max, QuerySet
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from books.book_values import BookValues
from books.history.actors import ActorRef
from books.history.states import DELETIONS, build_deleted_book
from books.models import Change, Operation, OperationProblem
from books.operations.selection_tasks import is_announced, write_pairs
from books.operations.tasks import Batch, BatchCounts, Plan, Sentences, Task, register_operation_kind
from books.writing import changes

UNDO = "undo"
Reason = OperationProblem.Reason


@register_operation_kind
class UndoTask(Task):
    """Its keys are negative ids of changes, because it runs backwards."""

    name = UNDO
    label = _("undo")
    title = ngettext_lazy("%(count)s change undone", "%(count)s changes undone", "number")
    sentences: ClassVar[Sentences] = {
        "changed": ngettext_lazy("%(count)s put back", "%(count)s put back", "number"),
        "refused": ngettext_lazy(
            "%(count)s left because somebody changed it since",
            "%(count)s left because somebody changed them since",
            "number",
        ),
        "unchanged": ngettext_lazy("%(count)s was as before", "%(count)s were as before", "number"),
    }
    # It restores deleted books, deletes added ones, and changes changed ones.
    permissions = ("books.add_book", "books.change_book", "books.delete_book")

    def __init__(self) -> None:
        self.related_ids: set[int] = set()

    def plan(self, operation: Operation) -> Plan:
        steps = list_operation_changes(operation)
        newest = steps.aggregate(newest=Max("pk"))["newest"] or 0
        return Plan(steps.count(), -newest - 1, 0)

    def read_batch(self, operation: Operation, limit: int) -> Batch:
        rows = list_operation_changes(operation).filter(pk__lt=-(operation.cursor or 0)).order_by("-pk")
        steps = list(rows[:limit])
        return Batch(-steps[-1].pk if steps else operation.last or 0, steps)

    def write_batch(self, operation: Operation, batch: Batch, actor: ActorRef, now: datetime) -> BatchCounts:
        steps: Sequence[Change] = batch.items
        self.related_ids = self.related_ids or find_related(operation)
        # The changes of earlier undos take changes back; those of others are no part of the chain.
        undo_ids = self.related_ids - {operation.pk, operation.undo_of_id}
        books = changes.lock_books({step.book_id for step in steps})
        rows = list_last_versions(steps)
        writer = UndoWriter(books, get_maximums(rows), actor, now, is_announced(operation))
        touched_versions = get_maximums(row for row in rows if row[1] not in self.related_ids)
        undone_versions = get_maximums(row for row in rows if row[1] in undo_ids)
        for step in steps:
            is_touched = touched_versions.get(step.book_id, 0) > step.version
            is_undone = undone_versions.get(step.book_id, 0) > step.version
            if step.kind in DELETIONS:
                writer.restore(step, is_touched, is_undone)
            elif step.kind in (Change.Kind.CREATED, Change.Kind.RESTORED):
                writer.delete(step, is_touched)
            else:
                writer.change(step, is_touched, is_undone)
        writer.flush()
        return writer.build_counts(len(steps))


class UndoWriter:
    """Reverts changes in order. It collects changes that one statement can write."""

    def __init__(
        self,
        books: dict[int, BookValues],
        last_versions: dict[int, int],
        actor: ActorRef,
        now: datetime,
        announce: bool,
    ) -> None:
        """`books` are the existing books, locked. `last_versions` includes deleted books; a deletion increases the
        version.
        """
        self.books, self.last_versions = books, last_versions
        self.actor, self.now, self.announce = actor, now, announce
        self.problems: list[OperationProblem] = []
        # The number of steps that wrote something, and of steps that reverted only some fields.
        self.changed = self.partial = 0
        self.waiting_kind = ""
        self.waiting: dict[int, tuple[BookValues, BookValues]] = {}

    def change(self, step: Change, is_touched: bool, is_undone: bool) -> None:
        """Gives each field its previous value, if it still has the value from after the change."""
        book = self.find_book(step)
        if book is None:
            # A cancelled earlier undo may already have reverted the creation of the book.
            if is_touched or not is_undone:
                self.problems.append(OperationProblem(subject=step.book_id, reason=Reason.DELETED))
            return
        before, after = step.before or {}, step.after or {}
        values = {name: value for name, value in before.items() if getattr(book, name) == after[name]}
        others = [name for name, value in before.items() if name not in values and getattr(book, name) != value]
        columns = book.find_changes(values, self.now)
        if others:
            self.problems.append(OperationProblem(subject=book.id, reason=Reason.CHANGED, detail=", ".join(others)))
            self.partial += bool(columns)
        if columns:
            self.wait("change", book, book._replace(**columns))

    def delete(self, step: Change, is_touched: bool) -> None:
        """Deletes a book that the operation added, unless it has changed since then."""
        book = self.find_book(step)
        if book is not None and is_touched:
            self.problems.append(OperationProblem(subject=step.book_id, reason=Reason.CHANGED))
        elif book is not None:
            self.wait("delete", book, book)

    def restore(self, step: Change, is_touched: bool, is_undone: bool) -> None:
        """Restores a deleted book, unless a user or an earlier undo has restored it already."""
        if self.find_book(step) is not None:
            if not is_undone:
                self.problems.append(OperationProblem(subject=step.book_id, reason=Reason.EXISTS))
            return
        if is_touched:
            self.problems.append(
                OperationProblem(subject=step.book_id, reason=Reason.DELETED if is_undone else Reason.EXISTS)
            )
            return
        book = build_deleted_book(step, self.now)._replace(version=self.last_versions[step.book_id] + 1)
        self.wait("restore", book, book)

    def find_book(self, step: Change) -> BookValues | None:
        """Returns the book as it is after the previous steps."""
        if step.book_id in self.waiting:
            self.flush()
        return self.books.get(step.book_id)

    def wait(self, kind: str, book: BookValues, changed_book: BookValues) -> None:
        if kind != self.waiting_kind:
            self.flush()
        self.waiting_kind = kind
        self.waiting[book.id] = book, changed_book

    def flush(self) -> None:
        pairs, self.waiting = list(self.waiting.values()), {}
        if not pairs:
            return
        books = {book.id: book for _, book in pairs}
        rejected_ids: set[int] = set()
        if self.waiting_kind == "delete":
            changes.delete_books(list(books.values()), self.actor, self.now, self.announce)
            for pk, book in books.items():
                del self.books[pk]
                self.last_versions[pk] = book.version + 1
        else:
            if self.waiting_kind == "change":
                rejected_ids = set(write_pairs(pairs, self.actor, self.now, self.announce))
            else:
                restored_ids = changes.restore_books(list(books.values()), self.actor, self.now, self.announce)
                rejected_ids = books.keys() - restored_ids
            self.books |= {pk: book for pk, book in books.items() if pk not in rejected_ids}
        self.changed += len(pairs) - len(rejected_ids)
        self.problems += [OperationProblem(subject=pk, reason=Reason.ISBN_IN_USE) for pk in sorted(rejected_ids)]

    def build_counts(self, step_count: int) -> BatchCounts:
        refused = len(self.problems) - self.partial
        return BatchCounts(self.changed, step_count - self.changed - refused, refused, problems=self.problems)


def list_operation_changes(operation: Operation) -> QuerySet[Change]:
    return Change.objects.filter(operation_id=operation.undo_of_id or 0)


def find_related(operation: Operation) -> set[int]:
    """Returns the operation at the start of a chain of undos, and all undos in the chain.

    Changes of a cancelled undo count as changes of the chain, even if that undo was undone.
    """
    first_id = operation.pk
    while parent_id := Operation.objects.filter(pk=first_id).values_list("undo_of", flat=True).first():
        first_id = parent_id
    related_ids, latest_ids = {first_id}, {first_id}
    while latest_ids:
        latest_ids = set(Operation.objects.filter(undo_of__in=latest_ids).values_list("pk", flat=True))
        related_ids |= latest_ids
    return related_ids


def list_last_versions(steps: Iterable[Change]) -> list[tuple[int, int | None, int]]:
    """Returns the last version that each operation gave to each of the books; None stands for no operation."""
    rows = Change.objects.filter(book_id__in={step.book_id for step in steps})
    return list(rows.order_by().values_list("book_id", "operation").annotate(Max("version")))


def get_maximums(rows: Iterable[tuple[int, int | None, int]]) -> dict[int, int]:
    """Returns the last version of each book."""
    versions: dict[int, int] = {}
    for book_id, _operation, version in rows:
        versions[book_id] = max(version, versions.get(book_id, 0))
    return versions
