"""The worker of operations: leases, resumption, cancelling, and what ends an operation."""

from collections.abc import Callable
from datetime import datetime
from threading import Event
from typing import Any, NoReturn

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models.functions import Now
from django.utils.translation import override
from psycopg import errors

from books.history.actors import ActorRef
from books.models import Book, Change, Operation
from books.operations import worker
from books.operations.edits import Edit
from books.operations.lifecycle import OperationEnded, OperationNotFound, cancel_operation
from books.operations.selection_tasks import EditTask
from books.operations.tasks import Batch, BatchCounts, OperationFailed
from books.operations.worker import MAX_PROBLEMS, OperationRunner
from books.writing import changes
from books.writing.changes import ConcurrentChange
from library_site.db.sql import get_database_time
from library_site.jobs.leases import LEASE_TIME, MAX_LOST_WORKERS, LeaseLost, renew_lease
from tests.support.books_admin import create_book
from tests.support.concurrency import start_concurrently
from tests.support.connection_faults import wrap_reconnecting
from tests.support.failures import break_database
from tests.support.operations import (
    begin_deletion,
    begin_edit,
    claim_runner,
    count_items,
    create_head_librarian,
    do_edit,
    run_operations,
    skip_delays,
)

SET_LENT = Edit({"available": False})


@pytest.fixture
def transactional_head(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> ActorRef:
    """A head librarian of a library with a book, whose worker closes its connection and does not wait."""
    skip_delays(monkeypatch)
    with transaction.atomic():
        create_book()
    return create_head_librarian()


class StopAfter(Event):
    """Is set after so many waits, and waits for nothing."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def wait(self, timeout: float | None = None) -> bool:
        self.count -= 1
        if not self.count:
            self.set()
        return self.is_set()


def raise_always(error: Exception, cause: Exception) -> Callable[..., NoReturn]:
    def fail(*_: object) -> NoReturn:
        raise error from cause

    return fail


@pytest.fixture
def batches_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("books.operations.worker.BATCH_SIZES", {"sqlite": 1, "postgresql": 1})


def end_lease(operation: Operation) -> None:
    Operation.objects.filter(pk=operation.pk).update(next_at=Now())


def count_lent() -> int:
    return Book.objects.filter(available=False).count()


def test_another_worker_goes_on_when_the_lease_of_a_dead_one_has_ended(head: ActorRef, batches_of_one: None) -> None:
    create_book(), create_book(), create_book()
    operation = begin_edit(head, SET_LENT)
    dead = claim_runner()
    dead.advance(), dead.advance()
    assert (count_lent(), worker.claim_operation()) == (1, None)
    end_lease(operation)
    run_operations(operation)
    assert (operation.state, count_items(operation)) == ("done", (3, 3, 0, 0, 0))
    assert sorted(Book.objects.values_list("version", flat=True)) == [2, 2, 2]
    with pytest.raises(LeaseLost):
        dead.advance()


def test_a_late_worker_writes_nothing(head: ActorRef, batches_of_one: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lease ends while it reads a batch."""
    create_book()
    operation = begin_edit(head, SET_LENT)
    late = claim_runner()
    late.advance()
    read_batch = EditTask.read_batch

    def read_slowly(task: EditTask, *arguments: Any) -> Batch | None:
        batch = read_batch(task, *arguments)
        monkeypatch.undo()
        end_lease(operation)
        run_operations(operation)
        return batch

    monkeypatch.setattr(EditTask, "read_batch", read_slowly)
    with pytest.raises(LeaseLost):
        late.advance()
    assert (Change.objects.filter(version=2).count(), count_items(operation)) == (1, (1, 1, 0, 0, 0))


def test_each_batch_renews_the_lease(head: ActorRef, batches_of_one: None) -> None:
    create_book()
    operation = begin_edit(head, SET_LENT)
    Operation.objects.filter(pk=operation.pk).update(attempted=worker.FAILURE_RETRIES.max_attempts - 1)
    runner = claim_runner()
    runner.advance()
    # Failures before the start do not count after it.
    assert Operation.objects.values_list("state", "attempted").get() == ("running", 0)
    Operation.objects.update(next_at=Now() + LEASE_TIME / 10, claimed=MAX_LOST_WORKERS, attempted=3)
    runner.advance()
    operation.refresh_from_db()
    assert Operation.objects.filter(next_at__gt=Now() + LEASE_TIME / 2).exists()
    assert (operation.claimed, operation.attempted) == (1, 0)


def test_a_cancelled_operation_changes_nothing_more(head: ActorRef, batches_of_one: None) -> None:
    create_book(), create_book()
    operation = begin_edit(head, SET_LENT)
    runner = claim_runner()
    runner.advance(), runner.advance()
    assert cancel_operation(operation.pk).state == "cancelled"
    assert cancel_operation(operation.pk).finished_at
    with pytest.raises(LeaseLost):
        runner.advance()
    assert (count_lent(), worker.claim_operation()) == (1, None)


def test_what_has_ended_or_is_unknown_cannot_be_cancelled(head: ActorRef) -> None:
    operation = do_edit(head, SET_LENT)
    with pytest.raises(OperationEnded):
        cancel_operation(operation.pk)
    for pk in (operation.pk + 1, 10**30):
        with pytest.raises(OperationNotFound):
            cancel_operation(pk)


def test_an_operation_that_workers_die_of_fails_in_the_language_of_who_began_it(head: ActorRef) -> None:
    with override("de"):
        operation = begin_edit(head, SET_LENT)
    for _ in range(MAX_LOST_WORKERS):
        claim_runner()
        end_lease(operation)
    run_operations(operation)
    german = "Aufgegeben: Mehr als 10 Arbeitsprozesse endeten dabei."
    assert (operation.state, operation.error) == ("failed", german)


def test_an_operation_whose_task_fails_says_why(head: ActorRef, monkeypatch: pytest.MonkeyPatch) -> None:
    create_book()
    operation = begin_edit(head, SET_LENT)

    def fail(task: EditTask, operation: Operation, batch: Batch, actor: ActorRef, now: datetime) -> BatchCounts:
        Book._base_manager.filter(pk=batch.cursor).delete()
        raise ValueError("a NUL: \0")

    monkeypatch.setattr(EditTask, "write_batch", fail)
    run_operations(operation)
    assert (operation.state, operation.error) == ("failed", "ValueError: a NUL: ?")
    assert Book.objects.exists()


def test_only_an_unexpected_failure_has_a_traceback_in_the_log(
    head: ActorRef, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What a file of a librarian is refused for is one line."""
    create_book()
    for error, is_expected in ((OperationFailed("Line 2: unexpected end of data."), True), (ValueError("odd"), False)):
        caplog.clear()
        operation = begin_edit(head, SET_LENT)
        monkeypatch.setattr(EditTask, "write_batch", raise_always(error, UnicodeError("further down")))
        run_operations(operation)
        [record] = [record for record in caplog.records if record.name == worker.__name__]
        assert record.getMessage() == f"Operation {operation.pk} failed: {operation.error}"
        assert (record.exc_info is None) == is_expected


def test_a_batch_that_always_meets_another_change_ends_the_operation(
    head: ActorRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of the history that should not be there stops it each time. What was done before stays."""
    monkeypatch.setattr(worker, "RETRY_DELAY", 0)
    monkeypatch.setattr(worker, "MAX_CONFLICTS", 3)
    monkeypatch.setattr(worker, "FIRST_BATCH_SIZE", 1)
    first, second = create_book(), create_book()
    operation = begin_deletion(head)
    entry = Change.objects.filter(book_id=second.pk).get()
    entry.pk, entry.version = None, second.version + 1
    entry.save(force_insert=True)
    run_operations(operation)
    assert (operation.state, operation.changed) == ("failed", 1)
    assert operation.error.startswith("ConcurrentChange: ")
    assert [Book.objects.filter(pk=book.pk).exists() for book in (first, second)] == [False, True]
    entry.delete()


def test_a_batch_that_others_stop_is_written_later(
    head: ActorRef, batches_of_one: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks end nothing, and neither do changes that meet one batch after another."""
    monkeypatch.setattr(worker, "RETRY_DELAY", 0)
    monkeypatch.setattr(worker, "MAX_CONFLICTS", 3)
    create_book(), create_book()
    operation, write_batch = begin_edit(head, SET_LENT), EditTask.write_batch
    failures = [
        raise_always(OperationalError(), cause) for cause in (errors.LockNotAvailable(), errors.DeadlockDetected())
    ]
    conflicts = [raise_always(ConcurrentChange(), IntegrityError())] * worker.MAX_CONFLICTS
    calls = iter([*failures, *conflicts, write_batch, *conflicts, write_batch])
    monkeypatch.setattr(EditTask, "write_batch", lambda *arguments: next(calls)(*arguments))
    run_operations(operation)
    assert (operation.state, count_items(operation), [*calls]) == ("done", (2, 2, 0, 0, 0), [])


def test_a_filter_of_another_release_selects_no_books(head: ActorRef) -> None:
    create_book()
    operation = do_edit(head, SET_LENT, shelf="A")
    assert (operation.state, operation.changed) == ("failed", 0)


def test_a_statement_that_takes_too_long_is_a_failure(
    transactional_head: ActorRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same batch would take as long again."""
    operation = begin_edit(transactional_head, SET_LENT)
    monkeypatch.setattr(EditTask, "write_batch", raise_always(OperationalError(), errors.QueryCanceled()))
    run_operations(operation)
    assert (operation.state, operation.attempted) == ("failed", worker.FAILURE_RETRIES.max_attempts)


def test_an_operation_that_always_fails_ends_and_others_are_served_meanwhile(
    transactional_head: ActorRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is in the language of who began the operation."""
    with override("de"):
        broken, other = begin_edit(transactional_head, SET_LENT), begin_edit(transactional_head, SET_LENT)
    write_batch, ended = EditTask.write_batch, []

    def fail_one(task: EditTask, operation: Operation, *arguments: Any) -> BatchCounts:
        if operation.pk == broken.pk:
            raise OperationalError("disk\0full")
        ended.append(Operation.objects.filter(pk=broken.pk, state="failed").exists())
        return write_batch(task, operation, *arguments)

    monkeypatch.setattr(EditTask, "write_batch", fail_one)
    run_operations(broken, other)
    assert (other.state, ended) == ("done", [False])
    count = worker.FAILURE_RETRIES.max_attempts
    reason = f"Die Datenbank ist {count} Mal nacheinander gescheitert: OperationalError: disk?full"
    assert (broken.state, broken.error, broken.lease, broken.next_at) == ("failed", reason, None, None)


def test_an_operation_that_fails_again_waits_longer(head: ActorRef) -> None:
    operation = begin_edit(head, SET_LENT)
    for failures, seconds in ((0, 1), (3, 8), (10, 30)):
        Operation.objects.filter(pk=operation.pk).update(attempted=failures, next_at=Now())
        assert worker.count_failure(claim_runner().operation, OperationalError()) == "put off"
        operation.refresh_from_db()
        assert operation.next_at
        assert (operation.next_at - get_database_time()).total_seconds() == pytest.approx(seconds, rel=0.45)
        assert (operation.attempted, operation.lease, operation.state) == (failures + 1, None, "waiting")


def test_what_another_worker_has_is_not_put_off(head: ActorRef) -> None:
    operation = begin_edit(head, SET_LENT)
    late = claim_runner()
    end_lease(operation)
    claim_runner()
    assert worker.count_failure(late.operation, OperationalError()) == "cancelled, or another worker has it"
    operation.refresh_from_db()
    assert operation.attempted == 0
    assert operation.lease


def test_no_operation_fails_because_the_database_is_away(
    transactional_head: ActorRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = begin_edit(transactional_head, SET_LENT)
    lease = claim_runner().operation
    away = [OperationalError() for _ in range(5 * worker.FAILURE_RETRIES.max_attempts)]

    def fail_at_first(execute: Callable[..., Any], *arguments: Any) -> Any:
        if away:
            raise away.pop()
        return execute(*arguments)

    lines: list[str] = []
    with wrap_reconnecting(fail_at_first):
        worker.run_operation(lease, Event(), lines.append)
    assert not away
    assert lines == [f"Operation {operation.pk}: put off"]
    operation.refresh_from_db()
    assert operation.attempted == 1
    run_operations(operation)
    assert (operation.state, operation.attempted, count_lent()) == ("done", 0, 1)


def test_a_worker_is_stopped_while_the_database_is_away(transactional_head: ActorRef) -> None:
    begin_edit(transactional_head, SET_LENT)
    lease, stop = claim_runner().operation, StopAfter(3)
    lines: list[str] = []
    with break_database(OperationalError()):
        worker.run_operation(lease, stop, lines.append)
    assert lines == [f"Operation {lease.pk}: not finished"]


def test_a_cancelled_operation_is_not_taken_up_again(head: ActorRef, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the batch that waits for others nor a task that reads for long renews a lease that is lost."""
    create_book()
    operation = begin_edit(head, SET_LENT)
    runner = claim_runner()
    runner.advance()
    leased = Operation.objects.get(pk=operation.pk)

    def cancel_and_fail(*_: object) -> NoReturn:
        cancel_operation(operation.pk)
        raise OperationalError from errors.LockNotAvailable()

    monkeypatch.setattr(OperationRunner, "write", cancel_and_fail)
    with pytest.raises(LeaseLost):
        runner.advance()
    with pytest.raises(LeaseLost):
        renew_lease(leased)
    operation.refresh_from_db()
    assert (operation.state, operation.next_at, operation.lease) == ("cancelled", None, None)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time.")
def test_a_batch_gives_up_while_somebody_holds_a_book(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others need not wait for the books that it has locked already."""
    head = create_head_librarian()
    first, held = create_book(), create_book()
    operation = begin_edit(head, SET_LENT)
    runner = claim_runner()
    runner.advance()
    with transaction.atomic():
        changes.lock_book(held.pk)
        assert start_concurrently(runner.advance).result() is True
        assert count_lent() == 0
    runner.advance()
    operation.refresh_from_db()
    assert count_items(operation) == (2, 2, 0, 0, 0)
    assert Book.objects.get(pk=first.pk).version == 2


@pytest.mark.django_db(transaction=True)
def test_a_batch_that_was_written_when_the_connection_was_lost_is_not_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "RECONNECT_DELAY", 0)
    with transaction.atomic():
        create_book(genre="a")
    operation = begin_edit(create_head_librarian(), Edit({}, "genre", "a", "aa"))
    write = OperationRunner.write

    def write_and_lose(runner: OperationRunner, *arguments: Any) -> None:
        monkeypatch.setattr(OperationRunner, "write", write)
        write(runner, *arguments)
        raise OperationalError

    monkeypatch.setattr(OperationRunner, "write", write_and_lose)
    run_operations(operation)
    assert (Book.objects.get().genre, count_items(operation)) == ("aa", (1, 1, 0, 0, 0))


def test_slow_batches_become_smaller_and_fast_ones_larger_again() -> None:
    sizes = []
    size = first = worker.FIRST_BATCH_SIZE
    for seconds in (0.3, 0.1, 0.04, 9.0, 9.0, 9.0, *[0.04] * 9):
        size = worker.get_next_size(size, seconds)
        sizes.append(size)
    assert sizes[:4] == [first // 2, first // 2, first, first // 2]
    assert sizes[5:7] == [worker.MIN_BATCH_SIZE, 2 * worker.MIN_BATCH_SIZE]
    assert sizes[-1] == worker.BATCH_SIZES[connection.vendor]


def test_a_stopped_worker_gives_the_operation_back(head: ActorRef) -> None:
    create_book()
    operation = begin_edit(head, SET_LENT)
    lease, stop = claim_runner().operation, Event()
    stop.set()
    lines: list[str] = []
    worker.run_operation(lease, stop, lines.append)
    assert lines == [f"Operation {operation.pk}: not finished"]
    run_operations(operation)
    assert (operation.state, count_lent()) == ("done", 1)


def test_no_more_problems_are_kept_than_the_limit_in_all_batches(
    head: ActorRef, batches_of_one: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_PROBLEMS > 2
    monkeypatch.setattr(worker, "MAX_PROBLEMS", 2)
    for genre in "aaaa":
        create_book(genre=genre)
    operation = do_edit(head, Edit({}, "genre", "a", ""))
    assert (operation.refused, operation.problems.count()) == (4, 2)
    monkeypatch.setattr(worker, "BATCH_SIZES", {"sqlite": 9, "postgresql": 9})
    operation = do_edit(head, Edit({"isbn": "I"}))
    assert (operation.changed, operation.refused, operation.problems.count()) == (1, 3, 2)
