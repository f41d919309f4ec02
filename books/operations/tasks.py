"""What a kind of operation has to say: how much there is to do, the next batch of it, and how a batch is written."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from books.history.actors import ActorRef
from books.models import Operation


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
    """An item that is left as it is. `subject` is the id of a book or the number of a row; `reason` one of
    OperationProblem.Reason.
    """

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


class Task(Protocol):
    """The work of one kind of operation. A worker makes one for each operation that it leases, and a new one after
    any failure.

    The worker passes the operation as it is stored, with the cursor behind which to go on; another worker may have
    begun it. A task may keep what it has read ahead.
    """

    def plan(self, operation: Operation) -> Plan:
        """Called once, before the first batch, outside a transaction."""

    def read_batch(self, operation: Operation, limit: int) -> Batch:
        """Returns at most so many items behind the operation's cursor, which is not the last one.

        Called outside a transaction: what takes long is done here, and checked again in `write_batch`.
        """

    def write_batch(self, operation: Operation, batch: Batch, actor: ActorRef, now: datetime) -> BatchCounts:
        """Writes the items in the transaction that stores the cursor, within a fraction of a second.

        It locks books before it writes any, all at once and in the order of their ids (`changes.lock_books`), so that
        writers do not wait for each other. The same batch comes again if the database gave the transaction up.
        """

    def require_complete(self, operation: Operation) -> None:
        """Called in the transaction that ends the operation as done. Raises OperationFailed if anything is missing."""


TASKS: dict[str, Callable[[], Task]] = {}
TaskType = TypeVar("TaskType", bound=Callable[[], Task])


def register_task(kind: str) -> Callable[[TaskType], TaskType]:
    """Registers the class of the tasks of this kind of operation."""

    def register(task_class: TaskType) -> TaskType:
        TASKS[kind] = task_class
        return task_class

    return register


def create_task(kind: str) -> Task:
    return TASKS[kind]()
