"""Checks whether the user who started an operation, and the API key or app that was used, still have permission."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from books.models import Operation
from books.operations.tasks import OperationFailed
from oauth.issuers import is_still_valid


def require_authority(operation: Operation, now: datetime) -> None:
    """Raises OperationFailed. An operation can wait and run for a long time, so permissions can change."""
    parameters = operation.parameters or {}
    # Only operators can run commands, and they may do everything.
    if parameters.get("by_command"):
        return
    if not is_person_permitted(operation.actor.user_id, parameters):
        raise OperationFailed(_("Who began this may not do so any more."))
    credential = parameters.get("credential")
    if credential and not is_still_valid(**credential, now=now):
        raise OperationFailed(_("The API key or app that began this may not do so any more."))


def is_person_permitted(user_id: int | None, parameters: Mapping[str, Any]) -> bool:
    """An operation without a credential comes from the admin, which requires staff. Inactive users may do nothing."""
    user = User.objects.filter(pk=user_id or 0).first()
    if user is None or not (user.is_staff or parameters.get("credential")):
        return False
    return user.has_perms(parameters.get("permissions", []))
