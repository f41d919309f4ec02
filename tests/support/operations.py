"""Operations of a head librarian, and a worker that does them in this process."""

from threading import Event
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils import timezone

from books.history.actors import ActorRef, find_actor
from books.models import Actor, Operation
from books.operations import worker
from books.operations.edits import DELETE, EDIT, Edit
from books.operations.lifecycle import store_operation, undo_operation
from books.operations.selections import Selection

CHANGE_BOOKS = ["books.change_book"]


def create_head_librarian() -> ActorRef:
    """Returns the account's actor for operations."""
    user = User.objects.create_user("head", is_staff=True)
    user.groups.add(Group.objects.get(name="Head librarians"))
    return find_actor(Actor.Channel.OPERATION, user_id=user.pk)


def begin_edit(actor: ActorRef, edit: Edit, events: bool = True, **filters: str) -> Operation:
    parameters = {"filter": Selection("v2", filters).to_parameters(), **edit.to_parameters(), "events": events}
    return store_operation(EDIT, parameters, actor, timezone.now(), CHANGE_BOOKS)


def begin_deletion(actor: ActorRef, **filters: str) -> Operation:
    parameters = {"filter": Selection("v2", filters).to_parameters()}
    return store_operation(DELETE, parameters, actor, timezone.now(), CHANGE_BOOKS)


def begin_undo(operation: Operation, actor: ActorRef) -> Operation:
    return undo_operation(operation.pk, actor, timezone.now(), CHANGE_BOOKS)


def work_off(*operations: Operation) -> None:
    """Does all operations that are due, and reads these again."""
    lines: list[str] = []
    while lease := worker.claim_due():
        worker.work_off(lease, Event(), lines.append)
    for operation in operations:
        operation.refresh_from_db()


def do_edit(actor: ActorRef, edit: Edit, **options: Any) -> Operation:
    operation = begin_edit(actor, edit, **options)
    work_off(operation)
    return operation


def do_deletion(actor: ActorRef, **filters: str) -> Operation:
    operation = begin_deletion(actor, **filters)
    work_off(operation)
    return operation


def do_undo(operation: Operation, actor: ActorRef) -> Operation:
    undo = begin_undo(operation, actor)
    work_off(undo)
    return undo


def count_items(operation: Operation) -> tuple[int | None, ...]:
    """Returns the numbers of matched, changed, unchanged, refused and missed items."""
    return operation.matched, operation.changed, operation.unchanged, operation.refused, operation.missed


def list_problems(operation: Operation) -> list[tuple[int, str, str]]:
    return list(operation.problems.order_by("pk").values_list("subject", "reason", "detail"))
