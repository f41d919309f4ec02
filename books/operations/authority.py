"""Asks whether who began an operation may still do so: the person, and the API key or app that it came by."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from books.models import Operation
from books.operations.tasks import OperationFailed
from oauth.stored_credentials import StoredCredential


class NotPermitted(OperationFailed):
    """Who began the operation may not do so any more."""


def require_authority(operation: Operation, now: datetime) -> None:
    """Raises NotPermitted. The operation can have waited for long, and can take long."""
    parameters = operation.parameters or {}
    # Who can run a command can do everything.
    if parameters.get("by_command"):
        return
    if not is_person_permitted(operation.actor.user_id, parameters):
        raise NotPermitted(_("Who began the operation may not do so any more."))
    credential = parameters.get("credential")
    if credential and not StoredCredential(**credential).is_valid(now):
        raise NotPermitted(_("The API key or app that began the operation may not do so any more."))


def is_person_permitted(user_id: int | None, parameters: Mapping[str, Any]) -> bool:
    """The admin, which has no credential, is for staff. `has_perms` is false for accounts that are not active."""
    user = User.objects.filter(pk=user_id or 0).first()
    # An operation that an earlier release stored does not say whether it has one.
    may_use_admin = user is not None and (user.is_staff or parameters.get("credential", {}) is not None)
    return user is not None and may_use_admin and user.has_perms(parameters.get("permissions", []))
