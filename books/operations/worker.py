"""The worker of operations. It leases a due operation and runs it batch by batch until it is done or cancelled.

One transaction writes a batch, its cursor and the end of the lease. After a crash another worker continues from the
cursor when the lease expires. All times come from the database.

Any failure discards the runner of the operation, with everything that it has read. The next runner reads from the
cursor.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event

from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from psycopg.errors import QueryCanceled

from books.history.actors import ActorRef
from books.models import Operation, OperationProblem
from books.operations.lifecycle import require_authority
from books.operations.tasks import KINDS, Batch, BatchCounts, OperationFailed, Task, is_announced
from books.search.search_texts import fold_search_texts
from books.summaries import refresh_summaries
from books.writing.changes import ConcurrentChange
from library_site.admin.stored_texts import translate_stored
from library_site.db.errors import is_conflict, is_timeout
from library_site.db.sql import execute, get_database_time
from library_site.db.texts import describe_error, truncate_text
from library_site.jobs import leases
from library_site.jobs.leases import (
    LEASE_TIME,
    POISONED_REASON,
    LeaseLost,
    finish_rows,
    get_leased,
    has_due,
    lock_leased,
    release_row,
    renew_lease,
)
from library_site.jobs.retries import RetrySchedule, retry_rows
from library_site.jobs.worker import (
    CONNECTION_ERRORS,
    RECONNECT_DELAY,
    Queue,
    call_reconnecting,
    drop_connection,
    run_queues,
)

log = logging.getLogger(__name__)
State = Operation.State

# The number of books in a batch. Other writers wait for them.
BATCH_SIZES = {"postgresql": 500, "sqlite": 200}
# A slower batch makes the next one smaller.
MAX_BATCH_SECONDS, FIRST_BATCH_SIZE, MIN_BATCH_SIZE = 0.2, 100, 20
# Seconds between batches. On SQLite, other writers sleep while they wait, and need a pause to get a turn.
PAUSES = {"postgresql": 0.0, "sqlite": 0.03}
# A batch waits only briefly for a lock, because others wait for the books that it has locked.
LOCK_TIMEOUT = "200ms"
# Seconds before a batch is tried again, and between searches for operations.
RETRY_DELAY, POLL_INTERVAL = 0.2, 0.5
# An operation fails if other writers change the books of a batch so many times in a row.
MAX_CONFLICTS = 50
# Seconds between refreshes of the summaries.
SUMMARY_INTERVAL = 60
# If the statements of an operation fail while the database is available, the operation is delayed. It fails after the
# last attempt without progress, after about four minutes.
FAILURE_RETRIES = RetrySchedule((1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30))
# So many problems of an operation are stored.
MAX_PROBLEMS = 10_000


def run(once: bool, write_line: Callable[[str], None]) -> None:
    """Runs until SIGTERM or SIGINT; with `once`, until no operation is due."""
    run_queues([Queue(OperationQueue(write_line).process, POLL_INTERVAL)], once)


class OperationQueue:
    """The operations, and between them the summaries and the texts of searches."""

    def __init__(self, write_line: Callable[[str], None]) -> None:
        self.write_line, self.next_summaries, self.has_texts = write_line, time.monotonic(), False

    def process(self, stop: Event) -> bool:
        operation = claim_operation()
        if operation:
            run_operation(operation, stop, self.write_line)
        if time.monotonic() >= self.next_summaries:
            self.next_summaries = time.monotonic() + SUMMARY_INTERVAL
            refresh_summaries(timezone.now())
            self.has_texts = True
        # A large library has so many after an upgrade that operations would wait for minutes.
        self.has_texts = self.has_texts and fold_search_texts()
        return bool(operation) or self.has_texts


def claim_operation() -> Operation | None:
    """Leases the operation that has waited longest. Ends an operation if too many workers have died of it."""
    if not has_due(Operation):
        return None
    with transaction.atomic(durable=True):
        claim = leases.claim_due(Operation, 1)
        for operation in Operation.objects.filter(pk__in=claim.poisoned_pks):
            with activate_operation_language(operation):
                error = translate_stored(POISONED_REASON)
            finish_rows(Operation, [operation.pk], State.FAILED, attempts=0, error=error)
        return Operation.objects.filter(pk__in=claim.pks).first()


def activate_operation_language(operation: Operation) -> translation.override:
    """Activates the language of the page where the operation was started; English for programs."""
    return translation.override((operation.parameters or {}).get("language", settings.LANGUAGE_CODE))


def run_operation(operation: Operation, stop: Event, write_line: Callable[[str], None]) -> None:
    """Runs a leased operation to its end, or releases it when the worker stops or the database fails."""
    runner = OperationRunner(operation, stop)
    try:
        if (operation.parameters or {}).get("by_command"):
            runner.fail(OperationFailed(_("The command that began this ended before it was done.")))
        while not stop.is_set() and not runner.result and runner.advance():
            stop.wait(PAUSES[connection.vendor])
        if not runner.result:
            # If the database is not available, the lease expires by itself.
            with suppress(*CONNECTION_ERRORS):
                release_row(operation)
    except LeaseLost:
        runner.result = "cancelled, or another worker has it"
    except CONNECTION_ERRORS as error:
        runner.result = release_operation(operation, error, stop)
    write_line(f"Operation {operation.pk}: {runner.result or 'not finished'}")


def release_operation(operation: Operation, error: Exception, stop: Event) -> str:
    """Releases an operation whose statement failed, once the database is available again. Returns the result.

    Until then, the database is at fault and not the operation.
    """
    drop_connection(error)
    while not stop.is_set():
        stop.wait(RECONNECT_DELAY)
        with suppress(*CONNECTION_ERRORS):
            return call_reconnecting(lambda: count_failure(operation, error))
    return "not finished"


@transaction.atomic(durable=True)
def count_failure(leased: Operation, error: Exception) -> str:
    """Delays the operation, or ends it after the last attempt. Returns the result."""
    if not lock_leased(leased):
        return "cancelled, or another worker has it"
    operation = get_leased(leased)
    failures = operation.attempted + 1
    if not FAILURE_RETRIES.is_last(failures):
        retry_rows(Operation, [operation.pk], FAILURE_RETRIES.get_delay(failures))
        return "put off"
    log.warning("Operation %s failed.", operation.pk, exc_info=error)
    with activate_operation_language(operation):
        reason = _("The database failed %(count)s times in a row: %(error)s")
        message = truncate_text(reason % {"count": failures, "error": describe_error(error)})
    finish_rows(Operation, [operation.pk], State.FAILED, error=message)
    return State.FAILED


def get_next_size(size: int, seconds: float) -> int:
    """Returns the maximum size of the batch after one with the limit `size` that took so many seconds."""
    if seconds > MAX_BATCH_SECONDS:
        return max(MIN_BATCH_SIZE, size // 2)
    return min(BATCH_SIZES[connection.vendor], size * 2) if seconds < MAX_BATCH_SECONDS / 4 else size


class OperationRunner:
    def __init__(self, operation: Operation, stop: Event) -> None:
        self.operation, self.stop = operation, stop
        self.batch_size = min(FIRST_BATCH_SIZE, BATCH_SIZES[connection.vendor])
        self.task: Task | None = None
        # The final state of the operation.
        self.result = ""
        # A batch that was read, but could not be written yet.
        self.batch: Batch | None = None
        # The concurrent changes that met the batch.
        self.conflicts = 0

    def advance(self) -> bool:
        """Starts the operation, or writes its next batch. Returns false when it has ended.

        Raises LeaseLost, and the errors of an unavailable database.
        """
        operation = get_leased(self.operation)
        with activate_operation_language(operation):
            try:
                return self.run_step(operation)
            except (LeaseLost, *CONNECTION_ERRORS):
                raise
            # Any exception of a task is stored for users, so that it does not block other operations.
            except Exception as error:
                self.fail(error)
                return False

    def run_step(self, operation: Operation) -> bool:
        task = self.task = self.task or KINDS[operation.kind]()
        if operation.state == State.WAITING:
            self.start(operation, task)
        elif operation.cursor == operation.last:
            self.finish_complete(operation, task)
            return False
        else:
            self.write_next(operation, task)
        return True

    def write_next(self, operation: Operation, task: Task) -> None:
        """Writes the next batch. If it must wait for others, keeps it, because the task has already read past it."""
        batch, self.batch = self.batch or task.read_batch(operation, self.batch_size), None
        start = time.monotonic()
        try:
            self.write(operation, task, batch)
        except (ConcurrentChange, OperationalError) as error:
            self.conflicts += isinstance(error, ConcurrentChange)
            if not is_contention(error) or self.conflicts > MAX_CONFLICTS:
                raise
            self.batch = batch
            renew_lease(operation)
            self.stop.wait(RETRY_DELAY)
        else:
            self.conflicts = 0
            self.batch_size = get_next_size(self.batch_size, time.monotonic() - start)

    def start(self, operation: Operation, task: Task) -> None:
        """Raises OperationFailed, LeaseLost."""
        require_authority(operation, get_database_time())
        plan = task.plan(operation)
        operation.matched = plan.matched
        parameters = {**(operation.parameters or {}), "announced": is_announced(operation)}
        with transaction.atomic(durable=True):
            self.require_lease()
            Operation.objects.filter(pk=operation.pk).update(
                state=State.RUNNING,
                started_at=Now(),
                next_at=Now() + LEASE_TIME,
                attempted=0,
                parameters=parameters,
                **plan._asdict(),
            )

    def write(self, operation: Operation, task: Task, batch: Batch) -> None:
        """Raises OperationFailed, LeaseLost. Then nothing is written."""
        with transaction.atomic(durable=True):
            if connection.vendor == "postgresql":
                execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            self.require_lease()
            now = get_database_time()
            require_authority(operation, now)
            counts = task.write_batch(operation, batch, ActorRef(operation.actor_id, operation.pk), now)
            store_problems(operation, counts.problems)
            store_progress(operation, batch.cursor, counts)

    def require_lease(self) -> None:
        """Locks the operation, so that it is not cancelled before the transaction ends. Raises LeaseLost."""
        if not lock_leased(self.operation):
            raise LeaseLost

    def finish_complete(self, operation: Operation, task: Task) -> None:
        """Ends the operation as done. Its number of items is then that of the results, because books may come to match
        or no longer match while it runs. Raises OperationFailed, LeaseLost.
        """
        done = F("changed") + F("unchanged") + F("refused")
        with transaction.atomic(durable=True):
            self.require_lease()
            task.require_complete(operation)
            finish_rows(Operation, [operation.pk], State.DONE, attempts=0, matched=done)
        self.result = State.DONE

    def fail(self, error: Exception) -> None:
        """Raises LeaseLost."""
        # The user who started the operation sees an OperationFailed. Only unexpected errors need a traceback.
        is_expected = isinstance(error, OperationFailed)
        message = truncate_text(str(error)) if is_expected else describe_error(error)
        log.warning("Operation %s failed: %s", self.operation.pk, message, exc_info=None if is_expected else error)
        with transaction.atomic(durable=True):
            self.require_lease()
            finish_rows(Operation, [self.operation.pk], State.FAILED, attempts=0, error=message)
        self.result = State.FAILED


def is_contention(error: Exception) -> bool:
    """Whether a batch stopped because others use its books. A statement that took too long would do so again."""
    is_too_slow = isinstance(error.__cause__, QueryCanceled)
    return isinstance(error, ConcurrentChange) or is_conflict(error) or (is_timeout(error) and not is_too_slow)


def store_progress(operation: Operation, cursor: int, counts: BatchCounts) -> None:
    """The number of lost workers restarts at zero after progress."""
    Operation.objects.filter(pk=operation.pk).update(
        cursor=cursor,
        changed=F("changed") + counts.changed,
        unchanged=F("unchanged") + counts.unchanged,
        refused=F("refused") + counts.refused,
        missed=F("missed") + counts.missed,
        next_at=Now() + LEASE_TIME,
        attempted=0,
        claimed=1,
    )


def store_problems(operation: Operation, problems: Sequence[OperationProblem]) -> None:
    """Stores problems, up to MAX_PROBLEMS for the operation."""
    if problems:
        capacity = MAX_PROBLEMS - OperationProblem.objects.filter(operation=operation).count()
        for problem in problems:
            problem.operation = operation
        OperationProblem.objects.bulk_create(problems[: max(0, capacity)])
