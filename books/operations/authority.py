"""Checks whether the user who started an operation, and the API key or app that was used, still have permission."""

from datetime import datetime

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from books.models import Operation
from books.operations.tasks import KINDS, OperationFailed
from oauth.issuers import is_still_valid


def require_authority(operation: Operation, now: datetime) -> None:
    """Raises OperationFailed. An operation can wait and run for a long time, so permissions can change."""
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
    return user.has_perms(KINDS[operation.kind].permissions)
