"""Finds users by the name in a command's arguments."""

from typing import NamedTuple

from django.contrib.auth.models import User
from django.core.management.base import CommandError


class Person(NamedTuple):
    """A user name and the id of its account; the id is 0 if only deleted accounts had this name."""

    name: str
    user_id: int


def get_active_user(username: str) -> User:
    """Raises CommandError."""
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user {username!r}.")
    if not user.is_active:
        raise CommandError(f"The user {username!r} is not active.")
    return user


def require_confirmation(username: str, question: str) -> None:
    """Lets the operator type the name. Raises CommandError."""
    try:
        response = input(question)
    except EOFError:
        response = ""
    if response != username:
        raise CommandError("Nothing was changed.")


def get_person(username: str) -> Person:
    return Person(username, User.objects.filter(username=username).values_list("pk", flat=True).first() or 0)
