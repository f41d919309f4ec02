"""People as the command line names them."""

from django.contrib.auth.models import User
from django.core.management.base import CommandError


def get_active_user(username: str) -> User:
    """Raises CommandError."""
    found = User.objects.filter(username=username).first()
    if found is None:
        raise CommandError(f"There is no user {username!r}.")
    if not found.is_active:
        raise CommandError(f"The user {username!r} is not active.")
    return found
