"""The kinds of operations, one class each: their labels, and the work of a worker."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, TypeVar

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from books.history.actors import ActorRef
from books.models import Operation, OperationProblem
from books.writing.merging import MERGE

BULK = "bulk"
# Only operations on more items than these can leave out events.
MAX_ANNOUNCED_ALWAYS = 1_000
# The sentences for the numbers of an operation, most important first. `number` selects singular or plural.
Sentences = Mapping[str, Any]
NOT_CHANGED: Sentences = {
    "unchanged": ngettext_lazy("%(count)s needed no change", "%(count)s needed no change", "number"),
    "refused": ngettext_lazy("%(count)s left as it was", "%(count)s left as they were", "number"),
    "missed": ngettext_lazy("%(count)s no longer matched", "%(count)s no longer matched", "number"),
}
CHANGED_TITLE = ngettext_lazy("%(count)s book changed", "%(count)s books changed", "number")
CHANGED: Sentences = {"changed": CHANGED_TITLE, **NOT_CHANGED}


class Plan(NamedTuple):
    """The work of an operation: the number of items, and the keys before the first item and of the last one.

    A task runs from `cursor` to `last`. Items added later have keys after `last` and do not belong to the operation. It
    is finished when, and only when, the cursor equals `last`.
    """

    matched: int
    cursor: int
    last: int


class Batch(NamedTuple):
    """The next items, in the task's own format, and the key of the last of them.

    A batch without items has the operation's last key.
    """

    cursor: int
    items: Sequence[Any]


class BatchCounts(NamedTuple):
    """The numbers of a batch's items by result, and the problems of the items that were not changed, without their
    operation.

    An item is missed if it no longer exists or no longer matches.
    """

    changed: int
    unchanged: int = 0
    refused: int = 0
    missed: int = 0
    problems: Sequence[OperationProblem] = ()


class OperationFailed(Exception):
    """The operation cannot continue. The message tells the user why."""


def is_announced(operation: Operation) -> bool:
    """Whether the changes of an operation send events. Only large operations can leave them out.

    A worker decides it when it starts, because the number of items may change later. An undo does what the undone
    operation did.
    """
    parameters = operation.parameters or {}
    is_small = (operation.matched or 0) <= MAX_ANNOUNCED_ALWAYS
    announced: bool = parameters.get("announced", parameters.get("events", True) or is_small)
    return announced


class Task:
    """A kind of operation, and the work of a worker: it creates a task for each operation that it leases, and a new one
    after any failure. The request itself does the work of a kind without the three methods `plan`, `read_batch` and
    `write_batch`.

    The worker passes the stored operation with its cursor; another worker may have started it. A task may cache items
    that it has read ahead.
    """

    name: ClassVar[str]
    # What is being done, and what was done with `number` books.
    label: ClassVar[Any] = _("change of many books")
    title: ClassVar[Any] = CHANGED_TITLE
    # Whether lists show it. They leave out what changes no book.
    is_listed: ClassVar[bool] = True
    # The sentences for its numbers.
    sentences: ClassVar[Sentences] = CHANGED

    @classmethod
    def get_title(cls, operation: Operation) -> Any:  # noqa: ARG003  # others read its parameters
        return cls.title

    @classmethod
    def count_books(cls, operation: Operation) -> int:
        """Returns the number for the title."""
        return operation.changed or 0

    @classmethod
    def read_numbers(cls, operation: Operation) -> dict[str, int | None]:
        """Returns the known numbers that `sentences` use."""
        return {name: getattr(operation, name) for name in ("changed", "unchanged", "refused", "missed")}

    def plan(self, operation: Operation) -> Plan:
        """Runs once, before the first batch, outside a transaction."""
        raise NotImplementedError

    def read_batch(self, operation: Operation, limit: int) -> Batch:
        """Returns at most so many items after the operation's cursor, which is not the last one.

        It runs outside a transaction, so slow work belongs here. `write_batch` checks the result again.
        """
        raise NotImplementedError

    def write_batch(self, operation: Operation, batch: Batch, actor: ActorRef, now: datetime) -> BatchCounts:
        """Writes the items within a fraction of a second, in the transaction that stores the cursor.

        It locks all its books first, together and in the order of their ids (`changes.lock_books`), so that writers do
        not wait for each other. If the database rolls back, the same batch is written again.
        """
        raise NotImplementedError

    def require_complete(self, operation: Operation) -> None:
        """Runs in the transaction that ends the operation. Raises OperationFailed if anything is missing.

        Nothing can be missing if the cursor is stored together with the items.
        """


KINDS: dict[str, type[Task]] = {}
TaskType = TypeVar("TaskType", bound=type[Task])


def register_operation_kind(kind: TaskType) -> TaskType:
    KINDS[kind.name] = kind
    return kind


def get_kind(name: str) -> type[Task]:
    """Returns Task itself for an unknown name: earlier releases had other kinds."""
    return KINDS.get(name, Task)


def list_unlisted_kinds() -> list[str]:
    return [kind.name for kind in KINDS.values() if not kind.is_listed]


@register_operation_kind
class BulkRequest(Task):
    """Its result has the number of its books by action. Operations of earlier releases have none."""

    name = BULK
    label = _("changes by a program")
    sentences: ClassVar[Sentences] = {
        "create": ngettext_lazy("%(count)s book added", "%(count)s books added", "number"),
        "update": CHANGED_TITLE,
        "delete": ngettext_lazy("%(count)s book deleted", "%(count)s books deleted", "number"),
    }

    @classmethod
    def get_title(cls, operation: Operation) -> Any:
        done = operation.result or {}
        return cls.sentences[next(iter(done))] if len(done) == 1 else CHANGED_TITLE

    @classmethod
    def read_numbers(cls, operation: Operation) -> dict[str, int | None]:
        return operation.result or {"update": operation.changed}


@register_operation_kind
class Merge(Task):
    name = MERGE
    label = _("two books became one")
    title = _("two books became one")
    sentences: ClassVar[Sentences] = {"changed": _("two books became one")}
