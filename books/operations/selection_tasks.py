"""Operations on a selection of books: edit and delete. Their filter is applied again before each batch."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from django.db import transaction
from django.db.models import Count, Max, QuerySet
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from books.book.fields import FIELDS
from books.book_values import BookValues
from books.history.actors import ActorRef, record_operation
from books.history.loans import LENT, TAKEN_BACK, find_loan
from books.models import Book, Operation, OperationProblem
from books.operations.edits import InvalidEdit, read_edit
from books.operations.previews import Preview, preview_deletion, preview_edit
from books.operations.tasks import (
    NOT_CHANGED,
    Batch,
    BatchCounts,
    Plan,
    Sentences,
    Task,
    is_announced,
    register_operation_kind,
)
from books.writing import changes
from library_site.db.integers import BIGINT_MAX

EDIT, DELETE, MARK = "edit", "delete", "mark"
# The number of ids to read ahead. For a filter without an index, each read scans the table.
READ_AHEAD = 5_000
# Books that get another ISBN are written one by one.
ISBN_BATCH = 50
Reason = OperationProblem.Reason
# Returns the books that match the values of a form's fields.
Select = Callable[[Mapping[str, str]], QuerySet[Book]]
SELECTIONS: dict[str, Select] = {}


def register_selection(form: str) -> Callable[[Select], Select]:
    """Registers a filter form under a name, with the function that selects its books. Operations store the name."""

    def register(select: Select) -> Select:
        SELECTIONS[form] = select
        return select

    return register


class StoredFilter(NamedTuple):
    """A stored filter: a form of SELECTIONS, and the values of its fields."""

    form: str
    values: Mapping[str, str]

    def list_books(self) -> QuerySet[Book]:
        """Use it at once: on SQLite the condition may contain the ids of the books that match now."""
        return SELECTIONS[self.form](self.values)


def get_selection(operation: Operation) -> StoredFilter:
    return StoredFilter(**(operation.parameters or {})["filter"])


def lock_matching(selection: StoredFilter, versions: Mapping[int, int]) -> dict[int, BookValues]:
    """Locks those of the books that still match, and returns them by id. `versions` are those at which they matched.

    A book whose version did not change still matches. The others are checked again. Raises ConcurrentChange.
    """
    books = changes.lock_books(versions)
    changed_ids = [pk for pk, book in books.items() if book.version != versions[pk]]
    if changed_ids:
        matching_ids = set(selection.list_books().filter(pk__in=changed_ids).values_list("pk", flat=True))
        for pk in set(changed_ids) - matching_ids:
            del books[pk]
    return books


class SelectionTask(Task):
    """Applies an edit to each book of a selection."""

    def __init__(self) -> None:
        # The ids and versions of books that were read ahead, in the order of their ids.
        self.versions: list[tuple[int, int]] = []

    @classmethod
    def preview(cls, books: QuerySet[Book], parameters: Mapping[str, Any]) -> Preview:
        """Previews the change that an operation with these parameters makes."""
        raise NotImplementedError

    def plan(self, operation: Operation) -> Plan:
        totals = get_selection(operation).list_books().order_by().aggregate(matched=Count("pk"), last=Max("pk"))
        return Plan(totals["matched"], -BIGINT_MAX, totals["last"] or 0)

    def read_batch(self, operation: Operation, limit: int) -> Batch:
        cursor, last = operation.cursor or 0, operation.last or 0
        self.versions = [row for row in self.versions if row[0] > cursor]
        if not self.versions:
            books = get_selection(operation).list_books().filter(pk__gt=cursor, pk__lte=last).order_by("pk")
            self.versions = list(books.values_list("pk", "version")[:READ_AHEAD])
        batch = self.versions[: self.limit_batch(operation, limit)]
        # The last of the books may be deleted by now.
        return Batch(batch[-1][0] if batch else last, batch)

    def limit_batch(self, operation: Operation, limit: int) -> int:
        return limit

    def write_batch(self, operation: Operation, batch: Batch, actor: ActorRef, now: datetime) -> BatchCounts:
        versions: dict[int, int] = dict(batch.items)
        books = lock_matching(get_selection(operation), versions)
        missed = [OperationProblem(subject=pk, reason=Reason.NO_MATCH) for pk in versions if pk not in books]
        counts = self.write_books(operation, list(books.values()), actor, now)
        return counts._replace(missed=len(missed), problems=[*missed, *counts.problems])

    def write_books(
        self, operation: Operation, books: Sequence[BookValues], actor: ActorRef, now: datetime
    ) -> BatchCounts:
        """Changes locked books."""
        raise NotImplementedError


@register_operation_kind
class DeleteTask(SelectionTask):
    name = DELETE
    label = _("deletion of many books")
    title = ngettext_lazy("%(count)s book deleted", "%(count)s books deleted", "number")
    sentences: ClassVar[Sentences] = {"changed": title, **NOT_CHANGED}

    @classmethod
    def preview(cls, books: QuerySet[Book], parameters: Mapping[str, Any]) -> Preview:  # noqa: ARG003  # an edit's
        return preview_deletion(books)

    def write_books(
        self, operation: Operation, books: Sequence[BookValues], actor: ActorRef, now: datetime
    ) -> BatchCounts:
        kept = changes.delete_unprotected_books(books, actor, now, is_announced(operation)) if books else []
        problems = [OperationProblem(subject=pk, reason=Reason.PROTECTED) for pk in kept]
        return BatchCounts(len(books) - len(kept), refused=len(kept), problems=problems)


@register_operation_kind
class EditTask(SelectionTask):
    name = EDIT
    title = ngettext_lazy("%(count)s book edited", "%(count)s books edited", "number")
    # Titles of edits that set the availability alone.
    loan_titles: ClassVar[Mapping[str, Any]] = {
        LENT: ngettext_lazy("%(count)s book marked as lent", "%(count)s books marked as lent", "number"),
        TAKEN_BACK: ngettext_lazy(
            "%(count)s book marked as available", "%(count)s books marked as available", "number"
        ),
    }

    @classmethod
    def get_title(cls, operation: Operation) -> Any:
        return cls.loan_titles.get(find_loan((operation.parameters or {}).get("set")), cls.title)

    @classmethod
    def preview(cls, books: QuerySet[Book], parameters: Mapping[str, Any]) -> Preview:
        return preview_edit(books, read_edit(parameters))

    def limit_batch(self, operation: Operation, limit: int) -> int:
        has_isbn = "isbn" in read_edit(operation.parameters or {}).list_fields()
        return min(limit, ISBN_BATCH) if has_isbn else limit

    def write_books(
        self, operation: Operation, books: Sequence[BookValues], actor: ActorRef, now: datetime
    ) -> BatchCounts:
        edit = read_edit(operation.parameters or {})
        problems, pairs = [], []
        for book in books:
            try:
                columns = book.find_changes(edit.build_values(book), now)
            except InvalidEdit:
                problems.append(OperationProblem(subject=book.id, reason=Reason.INVALID))
            else:
                pairs += [(book, book._replace(**columns))] if columns else []
        refused = write_pairs(pairs, actor, now, is_announced(operation))
        unchanged = len(books) - len(pairs) - len(problems)
        problems += [OperationProblem(subject=pk, reason=Reason.ISBN_IN_USE) for pk in refused]
        return BatchCounts(len(pairs) - len(refused), unchanged, len(problems), problems=problems)


@register_operation_kind
class MarkTask(EditTask):
    """The edit of the actions "Mark as lent" and "Mark as available", which run within the request."""

    name = MARK


class OperationRequest(NamedTuple):
    """An edit, and the selection of its books."""

    kind: type[SelectionTask]
    selection: StoredFilter
    parameters: Mapping[str, Any]

    def preview(self) -> Preview:
        return self.kind.preview(self.selection.list_books(), self.parameters)

    def build_parameters(self, *, events: bool) -> dict[str, Any]:
        return {"filter": self.selection._asdict(), **self.parameters, "events": events}


@transaction.atomic
def run_small_operation(
    task: SelectionTask, parameters: Mapping[str, Any], pks: Collection[int], actor: ActorRef, now: datetime
) -> Operation:
    """Runs a task for a few books in one transaction. Returns the finished operation.

    Raises ConcurrentChange.
    """
    actor = record_operation(task.name, actor, now)
    operation = Operation.objects.get(pk=actor.operation_id or 0)
    operation.parameters, operation.matched = dict(parameters), len(pks)
    counts = task.write_books(operation, list(changes.lock_books(pks).values()), actor, now)
    operation.changed, operation.refused, operation.missed = counts.changed, counts.refused, 0
    operation.unchanged = len(pks) - counts.changed - counts.refused
    operation.save()
    if not counts.changed:
        # It has nothing to show, and nothing to undo.
        operation.delete()
    return operation


def write_pairs(
    pairs: Sequence[tuple[BookValues, BookValues]], actor: ActorRef, now: datetime, announce: bool
) -> list[int]:
    """Writes locked books: each as it is and as it will be. Returns the ids of those whose new isbn is in use."""
    together = [pair for pair in pairs if pair[0].isbn == pair[1].isbn]
    if together:
        changes.change_books(together, actor, now, announce)
    rejected_ids = []
    for old, new in (pair for pair in pairs if pair[0].isbn != pair[1].isbn):
        try:
            with transaction.atomic():
                values = {name: getattr(new, name) for name in FIELDS if getattr(new, name) != getattr(old, name)}
                changes.change_book(old.id, values, None, actor, now, old, announce)
        except changes.IsbnInUse:
            rejected_ids.append(old.id)
    return rejected_ids
