"""Undoes an operation: reverts its changes one by one, newest first.

A field that somebody has changed since then is not reverted, even if its value is the same again. The undo consists of
ordinary changes, so it can be undone itself.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, NamedTuple

from django.db.models import Max, QuerySet
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from books.book_values import BookValues
from books.history.actors import ActorRef
from books.history.states import DELETIONS, build_deleted_book
from books.models import Change, Operation, OperationProblem
from books.operations.selection_tasks import write_pairs
from books.operations.tasks import Batch, BatchCounts, Plan, Sentences, Task, is_announced, register_operation_kind
from books.writing import changes

UNDO = "undo"
# The field of changes that add, delete or restore a book.
EXISTENCE = "id"
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
        books = changes.lock_books({step.book_id for step in steps})
        rows = list_changes_since(steps)
        touched = find_touched([row for row in rows if row.operation_id not in self.related_ids])
        # What earlier undos of the chain took back already.
        undo_ids = self.related_ids - {operation.pk, operation.undo_of_id}
        undone_versions = {row.book_id: row.version for row in rows if row.operation_id in undo_ids}
        last_versions = {row.book_id: row.version for row in rows}
        writer = UndoWriter(books, last_versions, touched, actor, now, is_announced(operation))
        for step in steps:
            is_undone = undone_versions.get(step.book_id, 0) > step.version
            if step.kind in DELETIONS:
                writer.restore(step, is_undone)
            elif step.kind in (Change.Kind.CREATED, Change.Kind.RESTORED):
                writer.delete(step)
            else:
                writer.change(step, is_undone)
        writer.flush()
        return writer.build_counts(len(steps))


class UndoWriter:
    """Reverts changes in order. It collects changes that one statement can write."""

    def __init__(
        self,
        books: dict[int, BookValues],
        last_versions: dict[int, int],
        touched: Mapping[int, Mapping[str, int]],
        actor: ActorRef,
        now: datetime,
        announce: bool,
    ) -> None:
        """`books` are the existing books, locked. `last_versions` includes deleted books; a deletion increases the
        version. `touched` is the result of `find_touched`.
        """
        self.books, self.last_versions, self.touched = books, last_versions, touched
        self.actor, self.now, self.announce = actor, now, announce
        self.problems: list[OperationProblem] = []
        # The number of steps that wrote something, and of steps that reverted only some fields.
        self.changed = self.partial = 0
        self.waiting_kind = ""
        self.waiting: dict[int, tuple[BookValues, BookValues]] = {}

    def change(self, step: Change, is_undone: bool) -> None:
        """Gives each field its previous value, if it still has the value from after the change and nobody has changed
        it since.
        """
        book, touched_names = self.find_book(step), self.find_touched_names(step)
        if book is None:
            # A cancelled earlier undo may already have reverted the creation of the book.
            if touched_names or not is_undone:
                self.problems.append(OperationProblem(subject=step.book_id, reason=Reason.DELETED))
            return
        before, after = step.before or {}, step.after or {}
        names = [name for name in before if getattr(book, name) == after[name] and name not in touched_names]
        values = {name: before[name] for name in names}
        others = [name for name, value in before.items() if name not in values and getattr(book, name) != value]
        columns = book.find_changes(values, self.now)
        if others:
            self.problems.append(OperationProblem(subject=book.id, reason=Reason.CHANGED, detail=", ".join(others)))
            self.partial += bool(columns)
        if columns:
            self.wait("change", book, book._replace(**columns))

    def delete(self, step: Change) -> None:
        """Deletes a book that the operation added, unless somebody has changed it since."""
        book = self.find_book(step)
        if book is not None and self.find_touched_names(step):
            self.problems.append(OperationProblem(subject=step.book_id, reason=Reason.CHANGED))
        elif book is not None:
            self.wait("delete", book, book)

    def restore(self, step: Change, is_undone: bool) -> None:
        """Restores a deleted book, unless a user or an earlier undo has restored it already."""
        if self.find_book(step) is not None:
            if not is_undone:
                self.problems.append(OperationProblem(subject=step.book_id, reason=Reason.EXISTS))
            return
        if self.find_touched_names(step):
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

    def find_touched_names(self, step: Change) -> set[str]:
        """Returns the fields of the book that somebody has changed since."""
        return {name for name, version in self.touched.get(step.book_id, {}).items() if version > step.version}

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
        reason = Reason.ISBN_IN_USE
        if self.waiting_kind == "delete":
            reason, rows = Reason.PROTECTED, list(books.values())
            rejected_ids = set(changes.delete_unprotected_books(rows, self.actor, self.now, self.announce))
            for pk in books.keys() - rejected_ids:
                self.last_versions[pk] = self.books.pop(pk).version + 1
        else:
            if self.waiting_kind == "change":
                rejected_ids = set(write_pairs(pairs, self.actor, self.now, self.announce))
            else:
                restored_ids = changes.restore_books(list(books.values()), self.actor, self.now, self.announce)
                rejected_ids = books.keys() - restored_ids
            self.books |= {pk: book for pk, book in books.items() if pk not in rejected_ids}
        self.books = changes.lock_again(self.books)
        self.changed += len(pairs) - len(rejected_ids)
        self.problems += [OperationProblem(subject=pk, reason=reason) for pk in sorted(rejected_ids)]

    def build_counts(self, step_count: int) -> BatchCounts:
        refused = len(self.problems) - self.partial
        return BatchCounts(self.changed, step_count - self.changed - refused, refused, problems=self.problems)


def list_operation_changes(operation: Operation) -> QuerySet[Change]:
    return Change.objects.filter(operation_id=operation.undo_of_id or 0)


def find_related(operation: Operation) -> set[int]:
    """Returns the operation at the start of this chain of undos, and all undos in it, also cancelled ones."""
    first_id = operation.pk
    while parent_id := Operation.objects.filter(pk=first_id).values_list("undo_of", flat=True).first():
        first_id = parent_id
    related_ids, latest_ids = {first_id}, {first_id}
    while latest_ids:
        latest_ids = set(Operation.objects.filter(undo_of__in=latest_ids).values_list("pk", flat=True))
        related_ids |= latest_ids
    return related_ids


class LaterChange(NamedTuple):
    """A change of a book that has a step in the batch."""

    book_id: int
    version: int
    kind: int
    after: Mapping[str, object] | None
    operation_id: int | None
    undone_id: int | None

    def list_fields(self) -> Collection[str]:
        return self.after or () if self.kind == Change.Kind.CHANGED else (EXISTENCE,)


def list_changes_since(steps: Sequence[Change]) -> list[LaterChange]:
    """Returns the changes of these books from the first step on, oldest first."""
    rows = Change.objects.filter(
        book_id__in={step.book_id for step in steps}, version__gte=min((step.version for step in steps), default=0)
    )
    columns = ("book_id", "version", "kind", "after", "operation", "operation__undo_of")
    return [LaterChange._make(row) for row in rows.order_by("book_id", "version").values_list(*columns)]


def find_touched(rows: Sequence[LaterChange]) -> dict[int, dict[str, int]]:
    """Returns the version of the last of these changes, for each book and field.

    A change that another undo has taken back does not count, and neither does that undo.
    """
    versions: dict[tuple[int, str], dict[int | None, list[int]]] = {}
    for row in rows:
        for name in row.list_fields():
            by_operation = versions.setdefault((row.book_id, name), {})
            if row.undone_id is not None and by_operation.get(row.undone_id):
                by_operation[row.undone_id].pop()
            else:
                by_operation.setdefault(row.operation_id, []).append(row.version)
    touched: dict[int, dict[str, int]] = {}
    for (book_id, name), by_operation in versions.items():
        if numbers := [version for operation_versions in by_operation.values() for version in operation_versions]:
            touched.setdefault(book_id, {})[name] = max(numbers)
    return touched
