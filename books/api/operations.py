"""Operations on many books, for all versions: their requests and responses."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from rest_framework.exceptions import ErrorDetail, PermissionDenied, ValidationError

from books.api.history import describe_fields, format_time
from books.fields import to_naive_utc
from books.history.actors import ActorRef, get_or_create_actor
from books.models import Actor, Operation
from books.operations.lifecycle import (
    UNDER_WAY,
    cancel_operation,
    find_operation,
    find_undo,
    store_operation,
    undo_operation,
)
from books.operations.previews import Preview
from books.operations.selection_tasks import OperationRequest
from books.operations.selections import StoredFilter
from books.read_model import BookEncoder
from library_site.api.query import FieldErrors
from library_site.api.responses import RETRY_SOON
from oauth.credentials import Credential
from oauth.scopes import SCOPES
from oauth.stored_credentials import describe_credential

OTHERS_OPERATIONS = "books.undo_others_operations"
SCOPE = "write"
BULK_PERMISSIONS = [permission for permission in [SCOPES[SCOPE].permission] if permission]


class ForeignOperation(PermissionDenied):
    """The operation belongs to another user."""

    default_detail = "Only who began the operation, or a head librarian, may do this"


def check_filter(selection: StoredFilter) -> None:
    """Raises ValidationError, whose errors name the fields of the filter."""
    try:
        selection.list_books()
    except ValidationError as error:
        raise ValidationError(flatten_problems({"filter": error.detail})) from error


def begin_operation(change: OperationRequest, events: bool, caller: Credential, now: datetime) -> Operation:
    return store_operation(
        change.kind.name,
        change.build_parameters(events=events),
        find_caller(caller),
        now,
        BULK_PERMISSIONS,
        credential=describe_credential(caller, SCOPE),
    )


def build_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Returns the values of filters as they would be in a query."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}


def flatten_problems(details: Mapping[str, Any], prefix: str = "") -> FieldErrors:
    """Names errors of nested fields like `filter.year_min`."""
    problems: FieldErrors = {}
    for name, detail in details.items():
        if isinstance(detail, Mapping):
            problems |= flatten_problems(detail, f"{prefix}{name}.")
        else:
            problems[f"{prefix}{name}".removesuffix(".non_field_errors")] = list(map(with_code, detail))
    return problems


def with_code(detail: Any) -> ErrorDetail:
    return detail if isinstance(detail, ErrorDetail) else ErrorDetail(str(detail), "invalid")


def cancel_own(pk: int, caller: Credential) -> Operation:
    """Raises OperationNotFound, OperationEnded, ForeignOperation."""
    require_operator(find_operation(pk), caller)
    return cancel_operation(pk)


def undo_own(pk: int, caller: Credential, now: datetime) -> Operation:
    """Raises OperationNotFound, OperationUnderWay, OperationUndone, NothingToUndo, ForeignOperation."""
    require_operator(find_operation(pk), caller)
    return undo_operation(pk, find_caller(caller), now, BULK_PERMISSIONS, describe_credential(caller, SCOPE))


def require_operator(operation: Operation, caller: Credential) -> None:
    """Raises ForeignOperation."""
    if operation.actor.user_id == caller.user_id:
        return
    user = User.objects.filter(pk=caller.user_id or 0).first()
    if user is None or not user.has_perm(OTHERS_OPERATIONS):
        raise ForeignOperation


def find_caller(caller: Credential) -> ActorRef:
    return get_or_create_actor(Actor.Channel.OPERATION, credential=caller)


def find_state_problems(state: str | None) -> FieldErrors:
    states = Operation.State.values
    if state is None or state in states:
        return {}
    return {"state": [ErrorDetail(f"It is one of {', '.join(states)}.", "enum")]}


def list_retry_headers(operation: Operation) -> dict[str, str]:
    """Returns Retry-After while the operation is running."""
    return RETRY_SOON if operation.state in UNDER_WAY else {}


def represent_operation(operation: Operation) -> dict[str, Any]:
    undo = find_undo(operation)
    return represent_row(operation, undo.pk if undo else None)


def represent_row(operation: Operation, undone_by: int | None) -> dict[str, Any]:
    finished_at = operation.finished_at
    return {
        "id": operation.pk,
        "kind": operation.kind,
        "state": operation.state,
        "matched": operation.matched,
        "changed": operation.changed,
        "unchanged": operation.unchanged,
        "refused": operation.refused,
        "undo_of": operation.undo_of_id,
        "undone_by": undone_by,
        "created_at": format_time(to_naive_utc(operation.created_at)),
        "finished_at": finished_at and format_time(to_naive_utc(finished_at)),
    }


def describe_preview(representation: BookEncoder, preview: Preview) -> dict[str, Any]:
    samples = [
        {
            "id": sample.id,
            "before": describe_fields(representation, sample.before),
            "after": describe_fields(representation, sample.after),
        }
        for sample in preview.samples
    ]
    return {"matched": preview.matched, "would_change": preview.would_change, "samples": samples}
