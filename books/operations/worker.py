"""The worker of operations: it leases one that is due, and does it batch by batch until it is done or cancelled.

A batch, the cursor behind it and the end of the lease are written in one transaction. After a crash another worker goes
on from the cursor when the lease has ended. All times are the database's.
"""

import logging
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import translation

from books.changes import ConcurrentChange
from books.history.actors import ActorRef
from books.models import Operation, OperationProblem
from books.operations.authority import require_authority
from books.operations.tasks import Batch, OperationFailed, Outcome, Problem, Task, load_task
from library_site.admin.stored_texts import translate_stored
from library_site.db.sql import execute, get_database_time
from library_site.db.timeouts import is_conflict, is_timeout
from library_site.jobs.leases import LEASE_TIME, POISONED_REASON, finish_rows, is_poisoned, keep_leased, lease_rows

log = logging.getLogger(__name__)
State = Operation.State

# Books of a batch, which other writers wait for.
BATCH_SIZES = {"postgresql": 500, "sqlite": 200}
# A batch that took longer makes the next one smaller, on a machine that is slow or busy.
MAX_BATCH_SECONDS, FIRST_BATCH_SIZE, MIN_BATCH_SIZE = 0.2, 100, 20
# Seconds between batches. On SQLite who waits for a turn sleeps in between, and would find the next batch there.
PAUSES = {"postgresql": 0.0, "sqlite": 0.03}
# A batch that waits for somebody's lock gives up soon, since others wait for the books that it has locked.
LOCK_TIMEOUT = "200ms"
# Seconds before a batch that gave up is tried again, before a database that failed is called again, and between
# searches for operations.
RETRY_DELAY, RECONNECT_DELAY, POLL_INTERVAL = 0.2, 1.0, 0.5
# So many problems of an operation are kept.
MAX_PROBLEMS = 10_000
MAX_ERROR_LENGTH = 500
CONNECTION_ERRORS = (InterfaceError, InternalError, OperationalError)


class Lease(NamedTuple):
    """An operation, and the lease that a worker has of it."""

    operation_id: int
    token: UUID


class LeaseLost(Exception):
    """The operation is cancelled, or another worker has it."""


def run(once: bool, write_line: Callable[[str], None]) -> None:
    """Works until SIGTERM or SIGINT; with `once`, until nothing is due any more."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    while not stop.is_set():
        lease = claim_reconnecting(stop)
        if lease:
            work_off(lease, stop, write_line)
        elif once:
            return
        else:
            stop.wait(POLL_INTERVAL)


def claim_reconnecting(stop: Event) -> Lease | None:
    """Returns None also if the database does not answer."""
    try:
        return claim_due() if has_due() else None
    except CONNECTION_ERRORS as error:
        reconnect(error, stop)
        return None


def has_due() -> bool:
    """Checks without a transaction, which on SQLite would make writers wait."""
    return Operation.objects.filter(next_at__lte=Now()).exists()


@transaction.atomic(durable=True)
def claim_due() -> Lease | None:
    """Leases the operation that waits longest; ends it if too many workers died of it."""
    due = Operation.objects.filter(next_at__lte=Now()).order_by("next_at", "pk").select_for_update(skip_locked=True)
    token, rows = lease_rows(Operation, due.values_list("pk", flat=True)[:1], ["id", "attempted", "claimed"])
    for pk, attempted, claimed in rows:
        if not is_poisoned(attempted, claimed):
            return Lease(pk, token)
        with activate_language(Operation.objects.get(pk=pk)):
            finish_rows(Operation, [pk], State.FAILED, attempts=0, error=translate_stored(POISONED_REASON))
    return None


def activate_language(operation: Operation) -> translation.override:
    """The language in which the operation was begun; of programs, English."""
    return translation.override((operation.parameters or {}).get("language", settings.LANGUAGE_CODE))


def work_off(lease: Lease, stop: Event, write_line: Callable[[str], None]) -> None:
    """Does a leased operation to its end, or gives it back when the worker is stopped."""
    runner = OperationRunner(lease, stop)
    try:
        while not stop.is_set():
            try:
                if not runner.do_next():
                    break
                stop.wait(PAUSES[connection.vendor])
            except CONNECTION_ERRORS as error:
                reconnect(error, stop)
        else:
            release(lease)
    except LeaseLost:
        runner.result = "cancelled, or another worker has it"
    write_line(f"Operation {lease.operation_id}: {runner.result}")


def reconnect(error: Exception, stop: Event) -> None:
    """Closes a connection that failed, so that the next statement opens a new one."""
    log.warning("The database did not answer: %s", type(error).__name__)
    connection.close()
    stop.wait(RECONNECT_DELAY)


class BatchLimit:
    """The most books of the next batch: fewer, if the last one kept others waiting for long."""

    def __init__(self) -> None:
        self.max_size = BATCH_SIZES[connection.vendor]
        self.size = min(FIRST_BATCH_SIZE, self.max_size)

    def adapt(self, seconds: float) -> None:
        """`seconds` is what the last batch took."""
        if seconds > MAX_BATCH_SECONDS:
            self.size = max(MIN_BATCH_SIZE, self.size // 2)
        elif seconds < MAX_BATCH_SECONDS / 4:
            self.size = min(self.max_size, self.size * 2)


class OperationRunner:
    """Does a leased operation, one step after the other."""

    def __init__(self, lease: Lease, stop: Event) -> None:
        self.lease, self.stop = lease, stop
        self.limit = BatchLimit()
        self.task: Task | None = None
        self.result = "not finished"
        # A batch that was read, and gave up when it was to be written.
        self.batch: Batch | None = None

    def do_next(self) -> bool:
        """Begins the operation, or writes its next batch. Returns false when it has ended.

        Raises LeaseLost, and the errors of a database that does not answer.
        """
        operation = self.load_operation()
        with activate_language(operation):
            return self.do_step_or_fail(operation)

    def do_step_or_fail(self, operation: Operation) -> bool:
        try:
            return self.do_step(operation)
        except (LeaseLost, *CONNECTION_ERRORS):
            raise
        # Any exception of a task is stored for people to read: other operations wait behind this one.
        except Exception as error:
            log.warning("Operation %s failed.", operation.pk, exc_info=error)
            self.finish(State.FAILED, error=format_error(error))
            return False

    def load_operation(self) -> Operation:
        """Raises LeaseLost."""
        operation = Operation.objects.filter(pk=self.lease.operation_id, lease=self.lease.token).first()
        if operation is None:
            raise LeaseLost
        return operation

    def do_step(self, operation: Operation) -> bool:
        task = self.task = self.task or load_task(operation.kind)
        if operation.state == State.WAITING:
            self.start(operation, task)
            return True
        # After any other failure it is read again: it can have been written before the connection was lost.
        batch, self.batch = self.batch or task.read_batch(operation, self.limit.size), None
        if batch is None:
            self.finish(State.DONE)
            return False
        start = time.monotonic()
        try:
            self.write(operation, task, batch)
        except (ConcurrentChange, OperationalError) as error:
            if not isinstance(error, ConcurrentChange) and not is_timeout(error) and not is_conflict(error):
                raise
            self.batch = batch
            self.wait_for_others()
        else:
            self.limit.adapt(time.monotonic() - start)
        return True

    def start(self, operation: Operation, task: Task) -> None:
        """Raises NotPermitted, LeaseLost."""
        require_authority(operation, get_database_time())
        plan = task.plan(operation)
        with transaction.atomic(durable=True):
            self.require_lease()
            Operation.objects.filter(pk=operation.pk).update(
                state=State.RUNNING, started_at=Now(), next_at=Now() + LEASE_TIME, **plan._asdict()
            )

    def write(self, operation: Operation, task: Task, batch: Batch) -> None:
        """Raises NotPermitted, LeaseLost; then nothing is written."""
        with transaction.atomic(durable=True):
            if connection.vendor == "postgresql":
                execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            self.require_lease()
            now = get_database_time()
            require_authority(operation, now)
            outcome = task.write_batch(operation, batch, ActorRef(operation.actor_id, operation.pk), now)
            store_problems(operation, outcome.problems)
            store_progress(operation, batch.cursor, outcome)

    def require_lease(self) -> None:
        """Locks the operation, so that it is neither cancelled nor leased before the end of the transaction.

        Raises LeaseLost.
        """
        if not keep_leased(Operation, {self.lease.operation_id: self.lease.token}, lock=True):
            raise LeaseLost

    def wait_for_others(self) -> None:
        """Lets others finish with the books of a batch, and renews the lease."""
        Operation.objects.filter(pk=self.lease.operation_id, lease=self.lease.token).update(next_at=Now() + LEASE_TIME)
        self.stop.wait(RETRY_DELAY)

    def finish(self, state: str, error: str = "") -> None:
        """Raises LeaseLost."""
        with transaction.atomic(durable=True):
            self.require_lease()
            finish_rows(Operation, [self.lease.operation_id], state, attempts=0, error=error)
        self.result = state


def store_progress(operation: Operation, cursor: int, outcome: Outcome) -> None:
    """A lost worker counts only if there was no progress since."""
    Operation.objects.filter(pk=operation.pk).update(
        cursor=cursor,
        changed=F("changed") + outcome.changed,
        unchanged=F("unchanged") + outcome.unchanged,
        refused=F("refused") + outcome.refused,
        missed=F("missed") + outcome.missed,
        next_at=Now() + LEASE_TIME,
        attempted=0,
        claimed=1,
    )


def store_problems(operation: Operation, problems: Sequence[Problem]) -> None:
    """Stores the problems, as long as the operation has fewer than MAX_PROBLEMS."""
    rows = [OperationProblem(operation=operation, **problem._asdict()) for problem in problems]
    if rows:
        capacity = MAX_PROBLEMS - OperationProblem.objects.filter(operation=operation).count()
        OperationProblem.objects.bulk_create(rows[: max(0, capacity)])


def release(lease: Lease) -> None:
    """Gives an operation back: another worker can go on at once. Without a database the lease ends by itself."""
    with suppress(*CONNECTION_ERRORS):
        Operation.objects.filter(pk=lease.operation_id, lease=lease.token).update(lease=None, next_at=Now())


def format_error(error: Exception) -> str:
    """Text that every database can store."""
    text = str(error) if isinstance(error, OperationFailed) else f"{type(error).__name__}: {error}"
    return text.encode(errors="replace").decode().replace("\0", "?")[:MAX_ERROR_LENGTH]
