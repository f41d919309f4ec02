"""The worker of operations: it leases one that is due, and does it batch by batch until it is done or cancelled.

A batch, the cursor behind it and the end of the lease are written in one transaction. After a crash another worker goes
on from the cursor when the lease has ended. All times are the database's.

Whatever fails ends the runner of the operation, with all that it has read: the next one reads from the cursor.
"""

import logging
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from threading import Event
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import translation
from django.utils.translation import gettext as _
from psycopg.errors import QueryCanceled

from books.history.actors import ActorRef
from books.models import Operation, OperationProblem
from books.operations.authority import require_authority
from books.operations.tasks import Batch, LeaseLost, OperationFailed, Outcome, Problem, Task, load_task, renew_lease
from books.writing.changes import ConcurrentChange
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
# An operation whose statements fail while the database answers others is put off, each time for twice as many seconds.
# It fails after MAX_FAILURES without progress, some four minutes.
MAX_FAILURES, FIRST_DELAY, MAX_DELAY = 12, 1, 30
# So many problems of an operation are kept.
MAX_PROBLEMS = 10_000
MAX_ERROR_LENGTH = 500
CONNECTION_ERRORS = (InterfaceError, InternalError, OperationalError)


class Lease(NamedTuple):
    """An operation, and the lease that a worker has of it."""

    operation_id: int
    token: UUID


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
    """Does a leased operation to its end, or gives it back when the worker is stopped or the database fails."""
    runner = OperationRunner(lease, stop)
    try:
        while not stop.is_set() and runner.do_next():
            stop.wait(PAUSES[connection.vendor])
        if not runner.result:
            release(lease)
    except LeaseLost:
        runner.result = "cancelled, or another worker has it"
    except CONNECTION_ERRORS as error:
        runner.result = give_back(lease, error, stop)
    write_line(f"Operation {lease.operation_id}: {runner.result or 'not finished'}")


def give_back(lease: Lease, error: Exception, stop: Event) -> str:
    """Gives an operation back whose statement failed, once the database answers others. Returns what became of it.

    Until then it is the database that failed, for however long, and not the operation.
    """
    while not stop.is_set():
        reconnect(error, stop)
        with suppress(*CONNECTION_ERRORS):
            return count_failure(lease, error)
    return "not finished"


@transaction.atomic(durable=True)
def count_failure(lease: Lease, error: Exception) -> str:
    """Puts the operation off, or ends it after MAX_FAILURES. Returns what became of it."""
    operation = Operation.objects.filter(pk=lease.operation_id, lease=lease.token).select_for_update().first()
    if operation is None:
        return "cancelled, or another worker has it"
    failures = operation.attempted + 1
    if failures < MAX_FAILURES:
        delay = timedelta(seconds=min(MAX_DELAY, FIRST_DELAY * 2 ** (failures - 1)))
        Operation.objects.filter(pk=operation.pk).update(attempted=failures, lease=None, next_at=Now() + delay)
        return "put off"
    log.warning("Operation %s failed.", operation.pk, exc_info=error)
    with activate_language(operation):
        reason = _("The database failed %(count)s times in a row: %(error)s")
        message = to_storable_text(reason % {"count": failures, "error": describe_error(error)})
    finish_rows(Operation, [operation.pk], State.FAILED, error=message)
    return State.FAILED


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
        # How the operation ended.
        self.result = ""
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
            # What a task refuses is for the person who began it: only what nobody expected needs a traceback.
            exc_info = None if isinstance(error, OperationFailed) else error
            log.warning("Operation %s failed: %s", operation.pk, format_error(error), exc_info=exc_info)
            self.fail(error)
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
        elif operation.cursor == operation.last:
            self.finish_complete(operation, task)
            return False
        else:
            self.write_next(operation, task)
        return True

    def write_next(self, operation: Operation, task: Task) -> None:
        """Writes the next batch. One that gives way to others is kept: the task has moved behind it."""
        batch, self.batch = self.batch or task.read_batch(operation, self.limit.size), None
        start = time.monotonic()
        try:
            self.write(operation, task, batch)
        except (ConcurrentChange, OperationalError) as error:
            if not has_given_way(error):
                raise
            self.batch = batch
            renew_lease(operation)
            self.stop.wait(RETRY_DELAY)
        else:
            self.limit.adapt(time.monotonic() - start)

    def start(self, operation: Operation, task: Task) -> None:
        """Raises NotPermitted, LeaseLost."""
        require_authority(operation, get_database_time())
        plan = task.plan(operation)
        with transaction.atomic(durable=True):
            self.require_lease()
            Operation.objects.filter(pk=operation.pk).update(
                state=State.RUNNING, started_at=Now(), next_at=Now() + LEASE_TIME, attempted=0, **plan._asdict()
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

    def finish_complete(self, operation: Operation, task: Task) -> None:
        """The only way to be done. Raises OperationFailed, LeaseLost."""
        with transaction.atomic(durable=True):
            self.require_lease()
            task.require_complete(operation)
            finish_rows(Operation, [operation.pk], State.DONE, attempts=0)
        self.result = State.DONE

    def fail(self, error: Exception) -> None:
        """Raises LeaseLost."""
        with transaction.atomic(durable=True):
            self.require_lease()
            finish_rows(Operation, [self.lease.operation_id], State.FAILED, attempts=0, error=format_error(error))
        self.result = State.FAILED


def has_given_way(error: Exception) -> bool:
    """Whether a batch gave up because others use its books. A statement that took too long would do so again."""
    is_too_slow = isinstance(error.__cause__, QueryCanceled)
    return isinstance(error, ConcurrentChange) or is_conflict(error) or (is_timeout(error) and not is_too_slow)


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
    return to_storable_text(str(error) if isinstance(error, OperationFailed) else describe_error(error))


def describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def to_storable_text(text: str) -> str:
    """Returns a text that every database can store."""
    return text.encode(errors="replace").decode().replace("\0", "?")[:MAX_ERROR_LENGTH]
