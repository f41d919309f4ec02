"""The kinds of operations, a class each: what people are told of it, and what a worker does."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, TypeVar

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from books.history.actors import ActorRef
from books.models import Operation
from books.writing.merging import MERGE

BULK = "bulk"
# Sentences by the numbers of an operation, the most important first. `number` decides between one and many.
Sentences = Mapping[str, Any]
LEFT: Sentences = {
    "unchanged": ngettext_lazy("%(count)s needed no change", "%(count)s needed no change", "number"),
    "refused": ngettext_lazy("%(count)s left as it was", "%(count)s left as they were", "number"),
    "missed": ngettext_lazy("%(count)s no longer matched", "%(count)s no longer matched", "number"),
}
CHANGED: Sentences = {
    "changed": ngettext_lazy("%(count)s book changed", "%(count)s books changed", "number"),
    **LEFT,
}


class Plan(NamedTuple):
    """What there is to do when an operation starts: the number of items, and keys before the first and of the last.

    A task goes on from `cursor` to `last`. What comes later is beyond `last`, and no part of the operation: it is done
    when its cursor is there, and only then.
    """

    matched: int
    cursor: int
    last: int


class Batch(NamedTuple):
    """The next items, in a form of the task's own, and the key of the last of them.

    If there are no more, it is empty and its cursor is the operation's last.
    """

    cursor: int
    items: Sequence[Any]


class RefusedItem(NamedTuple):
    """A book that is left as it is. `subject` is its id; `reason` one of OperationProblem.Reason."""

    subject: int
    reason: str
    detail: str = ""


class BatchCounts(NamedTuple):
    """The numbers of items of a batch by what became of them, and those that were refused or missed.

    Missed are items that were no longer to be done when their turn came.
    """

    changed: int
    unchanged: int = 0
    refused: int = 0
    missed: int = 0
    refused_items: Sequence[RefusedItem] = ()


class OperationFailed(Exception):
    """The operation ends; the message says to people why."""


class Kind:
    """A kind of operation. Those of this class itself are done in the request that begins them."""

    name: ClassVar[str]
    # Without one it is called a mass action of its name.
    label: ClassVar[Any] = ""
    # What it says of its numbers.
    sentences: ClassVar[Sentences] = CHANGED
    # What a person needs who begins it on a page.
    permissions: ClassVar[Sequence[str]] = ()

    @classmethod
    def read_numbers(cls, operation: Operation) -> dict[str, int | None]:
        """Returns the numbers that `sentences` are about, those that are known."""
        return {name: getattr(operation, name) for name in ("changed", "unchanged", "refused", "missed")}


class Task(Kind):
    """The work of one kind of operation. A worker makes one for each operation that it leases, and a new one after
    any failure.

    The worker passes the operation as it is stored, with the cursor behind which to go on; another worker may have
    begun it. A task may keep what it has read ahead.
    """

    def plan(self, operation: Operation) -> Plan:
        """Called once, before the first batch, outside a transaction."""
        raise NotImplementedError

    def read_batch(self, operation: Operation, limit: int) -> Batch:
        """Returns at most so many items behind the operation's cursor, which is not the last one.

        Called outside a transaction: what takes long is done here, and checked again in `write_batch`.
        """
        raise NotImplementedError

    def write_batch(self, operation: Operation, batch: Batch, actor: ActorRef, now: datetime) -> BatchCounts:
        """Writes the items in the transaction that stores the cursor, within a fraction of a second.

        It locks books before it writes any, all at once and in the order of their ids (`changes.lock_books`), so that
        writers do not wait for each other. The same batch comes again if the database gave the transaction up.
        """
        raise NotImplementedError

    def require_complete(self, operation: Operation) -> None:
        """Called in the transaction that ends the operation as done. Raises OperationFailed if anything is missing.

        Nothing can be missing where the cursor moves with what is written.
        """


KINDS: dict[str, type[Kind]] = {}
KindType = TypeVar("KindType", bound=type[Kind])


def register_kind(kind: KindType) -> KindType:
    KINDS[kind.name] = kind
    return kind


def get_kind(name: str) -> type[Kind]:
    """Returns Kind itself for a name that is not registered: earlier releases had other kinds."""
    return KINDS.get(name, Kind)


def create_task(name: str) -> Task:
    kind = KINDS[name]
    if not issubclass(kind, Task):
        raise TypeError(name)
    return kind()


@register_kind
class BulkRequest(Kind):
    name = BULK
    label = _("bulk request")


@register_kind
class Merge(Kind):
    name = MERGE
    label = _("merge")
    sentences: ClassVar[Sentences] = {"changed": _("two books became one")}
