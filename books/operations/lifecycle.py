"""Stores operations for a worker, checks who started them, cancels them and starts their undo."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from books.history.actors import ActorRef
from books.models import Actor, Change, Operation
from books.operations.tasks import OperationFailed, is_announced
from books.operations.undo import UNDO
from books.permissions import OPERATION_KINDS
from library_site.http.api_errors import APIError
from library_site.jobs.leases import lease_rows
from oauth.issuers import is_still_valid

State = Operation.State
UNDER_WAY = (State.WAITING, State.RUNNING)


class OperationNotFound(APIError):
    """There is no operation with this id."""

    status_code = 404
    default_detail = "Operation not found"


class OperationEnded(APIError):
    """The operation cannot be cancelled, because it is done or failed."""

    status_code = 409
    default_detail = "The operation has ended"


class OperationUnderWay(APIError):
    """The operation cannot be undone before it ends."""

    status_code = 409
    default_detail = "The operation is under way: cancel it first"


class OperationUndone(APIError):
    """The operation is undone, or its undo is running. To restore its changes, undo the undo."""

    status_code = 409
    default_detail = "The operation is undone already"


class NothingToUndo(APIError):
    """The history has no changes of the operation."""

    status_code = 409
    default_detail = "The operation changed nothing that is known"


def store_operation(
    kind: str,
    parameters: Mapping[str, Any],
    actor: ActorRef,
    now: datetime,
    token: str | None = None,
    credential: Mapping[str, Any] | None = None,
    undo_of: Operation | None = None,
) -> Operation:
    """Stores an operation for a worker. If an operation already has the token, returns that one.

    While the operation runs, the actor's user must have the permissions of its kind, and its credential
    (`oauth.issuers`) must be valid.
    """
    operation = Operation(
        kind=kind,
        actor_id=actor.id,
        created_at=now,
        state=State.WAITING,
        parameters={**parameters, "credential": credential, **note_language()},
        token=token,
        undo_of=undo_of,
        next_at=Now(),
        changed=0,
        unchanged=0,
        refused=0,
        missed=0,
    )
    try:
        with transaction.atomic():
            operation.save(force_insert=True)
    except IntegrityError:
        stored_operation = Operation.objects.filter(token=token).first() if token else None
        if stored_operation is None:
            raise
        return stored_operation
    return operation


@transaction.atomic
def begin_leased_operation(kind: str, parameters: Mapping[str, Any], actor: ActorRef, now: datetime) -> Operation:
    """Stores an operation that a command runs itself. No worker can lease it first."""
    operation = store_operation(kind, {**parameters, "by_command": True}, actor, now)
    lease_rows(Operation, [operation.pk], ["id"])
    return find_operation(operation.pk)


def note_language() -> dict[str, str]:
    """Returns the language of the page, in which a worker will write errors. Operations of programs have none."""
    language = get_language()
    return {} if language in (None, settings.LANGUAGE_CODE) else {"language": str(language)}


def find_operation(pk: int) -> Operation:
    """Raises OperationNotFound."""
    operation = Operation.objects.select_related("actor", "undo_of").filter(pk=pk).first()
    if operation is None:
        raise OperationNotFound
    return operation


def cancel_operation(pk: int) -> Operation:
    """Ends an operation. Changes made so far stay; after the return there are no more.

    It waits for the current batch. Raises OperationNotFound, OperationEnded.
    """
    Operation.objects.filter(pk=pk, state__in=UNDER_WAY).update(
        state=State.CANCELLED, finished_at=Now(), next_at=None, lease=None
    )
    operation = find_operation(pk)
    if operation.state != State.CANCELLED:
        raise OperationEnded
    return operation


def undo_operation(pk: int, actor: ActorRef, now: datetime, credential: Mapping[str, Any] | None = None) -> Operation:
    """Stores the undo of an operation that has ended. It sends no events if the operation sent none.

    Raises OperationNotFound, OperationUnderWay, OperationUndone, NothingToUndo.
    """
    undone = find_operation(pk)
    if undone.state in UNDER_WAY:
        raise OperationUnderWay
    if not Change.objects.filter(operation_id=pk).exists():
        raise NothingToUndo
    parameters = dict.fromkeys(("events", "announced"), is_announced(undone))
    try:
        return store_operation(UNDO, parameters, actor, now, credential=credential, undo_of=undone)
    except IntegrityError as error:
        raise OperationUndone from error


def find_undos(operations: Iterable[Operation]) -> dict[int, Operation]:
    """Returns what undid each of these operations, or is undoing it, unless that was undone itself.

    Takes a query, and another one for each further link of the longest chain of undos.
    """
    undos = {undo.undo_of_id or 0: undo for undo in list_undos(operations)}
    undone_again = find_undos(undos.values()) if undos else {}
    return {pk: undo for pk, undo in undos.items() if undo.pk not in undone_again}


def list_undos(operations: Iterable[Operation]) -> QuerySet[Operation]:
    """Returns the undos of these operations: at most one of each."""
    pks = [operation.pk for operation in operations]
    return Operation.objects.filter(undo_of__in=pks, state__in=[*UNDER_WAY, State.DONE])


def list_own_operations(user_id: int, state: str | None) -> QuerySet[Operation]:
    """Returns the operations of a user, through any channel."""
    # A list of ids, because a join would read the operations of all users.
    actors = list(Actor.objects.filter(user_id=user_id).values_list("pk", flat=True))
    return Operation.objects.filter(actor__in=actors, **({"state": state} if state else {}))


def require_authority(operation: Operation, now: datetime) -> None:
    """Checks whether the user who started it, and the API key or app that was used, still have permission.

    An operation can wait and run for a long time, so permissions can change. Raises OperationFailed.
    """
    parameters = operation.parameters or {}
    # Only operators can run commands, and they may do everything.
    if parameters.get("by_command"):
        return
    credential = parameters.get("credential")
    if not is_person_permitted(operation, needs_staff=not credential):
        raise OperationFailed(_("Who began this may not do so any more."))
    if credential and not is_still_valid(**credential, now=now):
        raise OperationFailed(_("The API key or app that began this may not do so any more."))


def is_person_permitted(operation: Operation, *, needs_staff: bool) -> bool:
    """An operation without a credential comes from the admin, which requires staff. Inactive users may do nothing."""
    user = User.objects.filter(pk=operation.actor.user_id or 0).first()
    if user is None or (needs_staff and not user.is_staff):
        return False
    return user.has_perms(OPERATION_KINDS[operation.kind])
