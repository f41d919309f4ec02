"""A person is forgotten while somebody else uses the library."""

from functools import partial

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import transaction

from books.history.actors import get_or_create_actor
from books.models import Actor
from tests.support.admin_pages import dump_database
from tests.support.concurrency import start_concurrently

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "ada-of-the-desk"


def forget(name: str = NAME) -> None:
    call_command("forget_user", name, yes=True)


def test_a_first_change_at_the_same_time_brings_no_name_back() -> None:
    user = User.objects.create_user(NAME)
    with transaction.atomic():
        get_or_create_actor(Actor.Channel.ADMIN, user_id=user.pk)
        end = start_concurrently(forget)
    end.result()
    assert NAME not in dump_database()


def test_a_change_of_a_person_who_is_being_forgotten_is_nobodys() -> None:
    user = User.objects.create_user(NAME)
    with transaction.atomic():
        forget()
        actor = start_concurrently(partial(get_or_create_actor, Actor.Channel.ADMIN, user_id=user.pk))
    pk = actor.result().id
    assert Actor.objects.values_list("pk", "identity", "user_id").get() == (pk, "admin - - - -", None)


def test_of_two_superusers_one_stays() -> None:
    for name in ("root", "second"):
        User.objects.create_superuser(name)
    with transaction.atomic():
        forget("root")
        second = start_concurrently(partial(forget, "second"))
    with pytest.raises(CommandError, match="second is the last superuser"):
        second.result()
