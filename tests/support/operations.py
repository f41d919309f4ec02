"""Operations of a head librarian, and a worker that does them in this process."""

from threading import Event
from typing import Any

import pytest
from django.utils import timezone

from books.files.export_tasks import EXPORT
from books.files.import_tasks import CHECK, IMPORT
from books.history.actors import ActorRef, get_or_create_actor
from books.models import Actor, ImportFile, Operation
from books.operations import worker
from books.operations.edits import Edit
from books.operations.lifecycle import store_operation, undo_operation
from books.operations.selection_tasks import DELETE, EDIT, StoredFilter
from books.operations.worker import FAILURE_RETRIES, OperationRunner
from tests.support.admin_pages import create_staff

MAX_LEASES = 100


def skip_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker of the test waits before it tries again."""
    for name in ("RECONNECT_DELAY", "RETRY_DELAY"):
        monkeypatch.setattr(worker, name, 0)
    # A moment ago: SQLite compares times as texts, whose forms differ within a millisecond.
    delays = (-0.001,) * 5
    monkeypatch.setattr(worker, "FAILURE_RETRIES", FAILURE_RETRIES._replace(delays=delays))


def create_head_librarian() -> ActorRef:
    """Returns the account's actor for operations."""
    user = create_staff("head", "Head librarians")
    return get_or_create_actor(Actor.Channel.OPERATION, user_id=user.pk)


def begin_edit(actor: ActorRef, edit: Edit, events: bool = True, **filters: str) -> Operation:
    parameters = {"filter": StoredFilter("v2", filters)._asdict(), **edit.to_parameters(), "events": events}
    return store_operation(EDIT, parameters, actor, timezone.now())


def begin_deletion(actor: ActorRef, **filters: str) -> Operation:
    parameters = {"filter": StoredFilter("v2", filters)._asdict()}
    return store_operation(DELETE, parameters, actor, timezone.now())


def begin_undo(operation: Operation, actor: ActorRef) -> Operation:
    return undo_operation(operation.pk, actor, timezone.now())


def run_operations(*operations: Operation) -> None:
    """Does all operations that are due, and reads these again."""
    lines: list[str] = []
    while lease := worker.claim_operation():
        worker.run_operation(lease, Event(), lines.append)
        assert len(lines) < MAX_LEASES, "The operations do not end."
    for operation in operations:
        operation.refresh_from_db()


def claim_runner() -> OperationRunner:
    """Leases the operation that is due."""
    lease = worker.claim_operation()
    assert lease
    return OperationRunner(lease, Event())


def do_edit(actor: ActorRef, edit: Edit, **options: Any) -> Operation:
    operation = begin_edit(actor, edit, **options)
    run_operations(operation)
    return operation


def do_deletion(actor: ActorRef, **filters: str) -> Operation:
    operation = begin_deletion(actor, **filters)
    run_operations(operation)
    return operation


def do_undo(operation: Operation, actor: ActorRef) -> Operation:
    undo = begin_undo(operation, actor)
    run_operations(undo)
    return undo


def begin_task(actor: ActorRef, kind: str, **parameters: Any) -> Operation:
    """Begins an operation of another kind."""
    return store_operation(kind, parameters, actor, timezone.now())


def begin_export(actor: ActorRef) -> Operation:
    return begin_task(actor, EXPORT, filter=StoredFilter("v2", {})._asdict())


def begin_import(actor: ActorRef, file: ImportFile) -> Operation:
    return begin_task(actor, IMPORT, file=file.pk, encoding=file.encoding, rules=file.rules)


def begin_check(actor: ActorRef, file: ImportFile) -> Operation:
    return begin_task(actor, CHECK, file=file.pk, encoding=file.encoding, rules=file.rules)


def count_items(operation: Operation) -> tuple[int | None, ...]:
    """Returns the numbers of matched, changed, unchanged, refused and missed items."""
    return operation.matched, operation.changed, operation.unchanged, operation.refused, operation.missed


def list_problems(operation: Operation) -> list[tuple[int, str, str]]:
    return list(operation.problems.order_by("pk").values_list("subject", "reason", "detail"))
