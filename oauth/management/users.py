"""Finds the users that commands name."""

from django.contrib.auth.models import User
from django.core.management.base import CommandError


def get_active_user(username: str) -> User:
    """Raises CommandError."""
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user {username!r}.")
    if not user.is_active:
        raise CommandError(f"The user {username!r} is not active.")
    return user
