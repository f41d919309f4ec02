"""Two transactions at the same time make keys, end access, change rights, and forget a person."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from books.history.actors import get_or_create_actor
from books.models import Actor
from oauth import api_keys
from oauth.api_keys import MAX_KEYS_PER_USER, TooManyKeys
from oauth.credentials import Credential, InvalidCredential
from oauth.issuers import lock_issuer
from oauth.models import APIKey, ChangedRights
from tests.support.admin_pages import dump_database
from tests.support.concurrency import start_concurrently
from tests.support.creators import KINDS, CreatorCase, create_creator
from tests.support.oauth_flows import create_reader
from webhooks import endpoints
from webhooks.models import Endpoint

pytestmark = pytest.mark.usefixtures("transactional_db")
READ = frozenset({"read"})


@pytest.fixture
def owner(transactional_db: None) -> User:
    return create_reader()


def make_key(owner: User, creator: Credential | None = None) -> APIKey:
    key, _ = api_keys.create_key(owner, "import", READ, timezone.now(), creator=creator)
    return key


@transaction.atomic
def make_endpoint(owner: User, creator: Credential | None) -> Endpoint:
    now = timezone.now()
    values = {"url": "https://receiver.example/hook"}
    endpoint, _ = endpoints.create_endpoint(owner, values, None, now, lock_issuer(creator, now))
    return endpoint


class Maker(NamedTuple):
    """What a credential with this scope makes, and whether it has ended."""

    scope: str
    make: Callable[[User, Credential], APIKey | Endpoint]
    has_ended: Callable[[Any], bool]


MAKERS = {
    "key": Maker("read", make_key, lambda key: key.revoked_at is not None),
    "endpoint": Maker("webhooks", make_endpoint, lambda endpoint: endpoint.state == "disabled"),
}


@pytest.fixture(params=MAKERS)
def maker(request: pytest.FixtureRequest) -> Maker:
    return MAKERS[request.param]


@pytest.fixture(params=KINDS)
def creator(request: pytest.FixtureRequest, owner: User, maker: Maker) -> CreatorCase:
    return create_creator(request.param, owner, maker.scope)


def test_access_that_ends_meanwhile_makes_nothing(owner: User, maker: Maker, creator: CreatorCase) -> None:
    with transaction.atomic():
        creator.end()
        second = start_concurrently(lambda: maker.make(owner, creator.credential))
        # The change of the user does not deadlock with it.
        owner.is_active = False
        owner.save()
    with pytest.raises(InvalidCredential):
        second.result()
    assert not APIKey.objects.filter(name="import").exists()
    assert not Endpoint.objects.exists()


def test_what_is_made_meanwhile_ends_too(owner: User, maker: Maker, creator: CreatorCase) -> None:
    with transaction.atomic():
        made = maker.make(owner, creator.credential)
        second = start_concurrently(creator.end)
    second.result()
    made.refresh_from_db()
    assert maker.has_ended(made)


def test_a_user_gets_no_more_keys_than_the_maximum(owner: User) -> None:
    APIKey.objects.bulk_create(
        APIKey(name="old", owner=owner, prefix=f"{number:012}", digest="", scopes="read", created_at=timezone.now())
        for number in range(MAX_KEYS_PER_USER - 1)
    )
    with transaction.atomic():
        make_key(owner)
        second = start_concurrently(lambda: make_key(owner))
    with pytest.raises(TooManyKeys):
        second.result()
    assert APIKey.objects.count() == MAX_KEYS_PER_USER


def test_the_later_of_two_changes_of_rights_sees_the_earlier(owner: User) -> None:
    groups = [Group.objects.create(name=name) for name in ("morning", "evening")]
    for group in groups:
        group.permissions.add(Permission.objects.get(codename="change_book"))
    owner.groups.add(*groups)
    with transaction.atomic():
        owner.groups.remove(groups[0])
        second = start_concurrently(lambda: User.objects.get().groups.remove(groups[1]))
    second.result()
    assert ChangedRights.objects.values_list("user_id", "scopes").get() == (owner.pk, "read")


def test_a_key_that_is_made_while_a_right_is_lost_has_not_that_right(owner: User) -> None:
    owner.user_permissions.add(Permission.objects.get(codename="change_book"))
    with transaction.atomic():
        owner.user_permissions.clear()
        second = start_concurrently(
            lambda: api_keys.create_key(owner, "import", frozenset({"read", "write"}), timezone.now())
        )
    _, text = second.result()
    assert api_keys.get_credential(text, timezone.now()).scopes == READ


# People who are forgotten


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
