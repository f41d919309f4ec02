"""What ends an access token before its hour is over: at once in this process, within five seconds in every other."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.utils import timezone
from oauth2_provider.models import Application
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from oauth import api_keys
from oauth.credentials import Credential
from oauth.models import APIKey, Authorization, ChangedRights
from oauth.scopes import NO_SCOPES, parse_scopes
from oauth.tokens import access_tokens, revocations
from oauth.tokens.revocations import RevocationList
from tests.support.forged_tokens import claims_of, forged
from tests.support.oauth_flows import (
    bearer,
    code_for,
    confidential_app,
    librarian,
    public_app,
    redemption,
    refreshing,
    tokens_for,
)


class World:
    """A librarian with two apps, and what each was given."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.user = librarian()
        self.group = Group.objects.get(name="Librarians")
        self.permission = Permission.objects.get(codename="change_book")
        self.bookshop, self.shelf = confidential_app(), public_app()
        self.code = code_for(client, self.user, self.shelf)
        self.of_shelf = client.post("/oauth/token", data=redemption(self.shelf, self.code)).json()
        self.of_bookshop = tokens_for(client, self.user, self.bookshop)

    def left(self, given: dict[str, Any]) -> str | None:
        """The scopes that the library still grants to an access token."""
        answer = self.client.get("/oauth/resource", headers=bearer(given["access_token"]))
        scope: str | None = answer.json().get("scope")
        return scope


Change = Callable[[World], object]


@pytest.fixture
def world(api: httpx.Client) -> World:
    return World(api)


def revoke(world: World) -> None:
    form = {"client_id": "shelf", "token": world.of_shelf["refresh_token"]}
    assert world.client.post("/oauth/revoke", data=form).status_code == 200


def replay_the_code(world: World) -> None:
    assert world.client.post("/oauth/token", data=redemption(world.shelf, world.code)).status_code == 400


def reuse_a_refresh_token(world: World) -> None:
    form = refreshing(world.shelf, world.of_shelf["refresh_token"])
    assert [world.client.post("/oauth/refresh", data=form).status_code for _ in range(2)] == [200, 400]


def delete_the_app(world: World) -> None:
    world.shelf.delete()


def delete_apps(world: World) -> None:
    Application.objects.filter(client_id="shelf").delete()


def delete_the_user(world: World) -> None:
    world.user.delete()


def delete_users(world: World) -> None:
    User.objects.filter(pk=world.user.pk).delete()


def change_the_password(world: World) -> None:
    world.user.set_password("a new one, long enough")
    world.user.save()


def forget_the_password(world: World) -> None:
    world.user.set_unusable_password()
    world.user.save()


def deactivate(world: World) -> None:
    world.user.is_active = False
    world.user.save()


def deactivate_alone(world: World) -> None:
    world.user.is_active = False
    world.user.save(update_fields=["is_active"])


OF_ONE_GRANT: list[Change] = [revoke, replay_the_code, reuse_a_refresh_token, delete_the_app, delete_apps]
OF_A_PERSON: list[Change] = [
    delete_the_user,
    delete_users,
    change_the_password,
    forget_the_password,
    deactivate,
    deactivate_alone,
]
OF_A_ROLE: dict[str, Change] = {
    "user.groups.remove": lambda world: world.user.groups.remove(world.group),
    "user.groups.clear": lambda world: world.user.groups.clear(),
    "user.groups.set": lambda world: world.user.groups.set([]),
    "group.user_set.remove": lambda world: world.group.user_set.remove(world.user),
    "group.user_set.clear": lambda world: world.group.user_set.clear(),
    "group.permissions.remove": lambda world: world.group.permissions.remove(world.permission),
    "group.permissions.clear": lambda world: world.group.permissions.clear(),
    "group.permissions.set": lambda world: world.group.permissions.set([]),
    "permission.group_set.remove": lambda world: world.permission.group_set.remove(world.group),
    "permission.group_set.clear": lambda world: world.permission.group_set.clear(),
    "group.delete": lambda world: world.group.delete(),
    "groups.delete": lambda world: Group.objects.filter(pk=world.group.pk).delete(),
}


@pytest.mark.parametrize("change", OF_ONE_GRANT)
def test_a_grant_ends_at_once(
    world: World, change: Change, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    before = world.left(world.of_shelf), world.left(world.of_bookshop)
    with django_capture_on_commit_callbacks(execute=True):
        change(world)
    after = world.left(world.of_shelf), world.left(world.of_bookshop)
    assert (before, after) == (("read write", "read write"), (None, "read write"))


@pytest.mark.parametrize("change", OF_A_PERSON)
def test_all_that_a_person_granted_ends_at_once(
    world: World, change: Change, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    before = world.left(world.of_shelf), world.left(world.of_bookshop)
    with django_capture_on_commit_callbacks(execute=True):
        change(world)
    after = world.left(world.of_shelf), world.left(world.of_bookshop)
    assert (before, after) == (("read write", "read write"), (None, None))


@pytest.mark.parametrize("change", OF_A_ROLE.values(), ids=OF_A_ROLE)
def test_a_lost_role_is_lost_at_once(
    world: World, change: Change, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    before = world.left(world.of_shelf)
    with django_capture_on_commit_callbacks(execute=True):
        change(world)
    assert (before, world.left(world.of_shelf)) == ("read write", "read")


@pytest.mark.parametrize("take", ["remove", "clear", "set"])
@pytest.mark.parametrize("side", ["user", "permission"])
def test_a_permission_of_ones_own_is_lost_at_once(
    world: World, take: str, side: str, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    world.user.groups.clear()
    world.user.user_permissions.add(world.permission)
    relation: Any = world.user.user_permissions if side == "user" else world.permission.user_set
    other = world.permission if side == "user" else world.user
    arguments: dict[str, list[Any]] = {"remove": [other], "clear": [], "set": [[]]}
    before = world.left(world.of_shelf)
    with django_capture_on_commit_callbacks(execute=True):
        getattr(relation, take)(*arguments[take])
    assert (before, world.left(world.of_shelf)) == ("read write", "read")


def test_a_lost_superuser_is_lost_at_once(
    world: World, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    world.user.groups.clear()
    world.user.is_superuser = True
    world.user.save()
    before = world.left(world.of_shelf)
    with django_capture_on_commit_callbacks(execute=True):
        world.user.is_superuser = False
        world.user.save()
    assert (before, world.left(world.of_shelf)) == ("read write", "read")


def test_a_role_that_is_held_twice_is_lost_with_the_second(
    world: World, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    world.user.user_permissions.add(world.permission)
    left = []
    for take in (world.user.groups.clear, world.user.user_permissions.clear):
        with django_capture_on_commit_callbacks(execute=True):
            take()
        left.append(world.left(world.of_shelf))
    assert left == ["read write", "read"]


def test_others_keep_what_they_have(
    world: World, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    given = tokens_for(world.client, librarian("other"), world.bookshop)
    with django_capture_on_commit_callbacks(execute=True):
        world.group.user_set.remove(world.user)
        change_the_password(world)
        deactivate(world)
        delete_the_user(world)
    assert world.left(given) == "read write"


def test_a_grant_after_a_new_password_is_good(
    world: World, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        change_the_password(world)
    assert world.left(tokens_for(world.client, world.user, world.bookshop)) == "read write"


def test_who_comes_back_must_consent_anew(
    world: World, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        deactivate(world)
        world.user.is_active = True
        world.user.save()
    assert world.left(world.of_shelf) is None
    assert world.left(tokens_for(world.client, world.user, world.bookshop)) == "read write"


def test_what_is_no_change_of_rights_ends_nothing(
    world: World, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        world.user.email = "jane@library.example"
        world.user.save()
        world.user.save(update_fields=["last_login"])
        world.shelf.name = "Bookshelf"
        world.shelf.save()
    assert (world.left(world.of_shelf), world.left(world.of_bookshop)) == ("read write", "read write")


def test_what_is_rolled_back_ends_nothing(world: World) -> None:
    with transaction.atomic():
        deactivate(world)
        transaction.set_rollback(True)
    revocations.REVOCATION_LIST.invalidate()
    assert world.left(world.of_shelf) == "read write"


@pytest.mark.parametrize("change", [revoke, deactivate, change_the_password, OF_A_ROLE["user.groups.clear"]])
def test_another_process_knows_before_five_seconds_have_passed(world: World, change: Change) -> None:
    claims = access_tokens.verify_access_token(world.of_shelf["access_token"], now=timezone.now().timestamp())
    other = RevocationList()

    def left() -> frozenset[str]:
        return other.current().get_remaining_scopes(claims.sid, claims.user_id, claims.scopes) or NO_SCOPES

    before = left()
    change(world)
    other.read_at -= 5
    assert before == {"read", "write"}
    assert left() < before


def test_a_process_asks_again_only_after_seconds(
    world: World, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    other = RevocationList()
    with django_assert_num_queries(2):
        other.current()
    with django_assert_num_queries(0):
        for _ in range(10):
            other.current()
    other.read_at -= 5
    with django_assert_num_queries(2):
        other.current()


def test_the_list_holds_no_more_than_can_matter(world: World) -> None:
    """The last token of what ended at noon is over at one."""
    revoke(world)
    world.user.groups.clear()
    now = timezone.now()
    for hours, entries in ((0, 1), (1, 1), (2, 0)):
        found = revocations.load_revocations(now + timedelta(hours=hours))
        assert (len(found.ended), len(found.rights)) == (entries, entries)


def test_a_record_outlives_its_person_and_its_app(world: World) -> None:
    delete_the_user(world)
    world.shelf.delete()
    assert Authorization.objects.filter(user=None, ended_at__isnull=False).count() == 2
    assert ChangedRights.objects.count() <= 1
    assert revocations.load_revocations(timezone.now()).ended == set(Authorization.objects.values_list("pk", flat=True))


@pytest.mark.parametrize("change", [*OF_ONE_GRANT, *OF_A_PERSON])
def test_keys_made_by_a_token_end_with_its_grant(world: World, change: Change) -> None:
    claims = access_tokens.verify_access_token(world.of_shelf["access_token"], now=timezone.now().timestamp())
    _, text = api_keys.create_key(
        world.user, "by the app", parse_scopes("read"), timezone.now(), maker=credential(authorization=claims.sid)
    )
    headers = {"X-API-Key": text}
    before = world.client.get("/api/books", headers=headers).status_code
    change(world)
    assert (before, world.client.get("/api/books", headers=headers).status_code) == (200, 401)


def credential(**of: Any) -> Credential:
    return Credential("any", parse_scopes("read"), **of)


def test_a_revoked_key_takes_those_it_made_along(world: World) -> None:
    now = timezone.now()
    first, _ = api_keys.create_key(world.user, "first", parse_scopes("read"), now)
    second, _ = api_keys.create_key(world.user, "second", parse_scopes("read"), now, maker=credential(key=first.pk))
    _, text = api_keys.create_key(world.user, "third", parse_scopes("read"), now, maker=credential(key=second.pk))
    other, _ = api_keys.create_key(world.user, "other", parse_scopes("read"), now)
    assert api_keys.revoke_keys(APIKey.objects.filter(pk=first.pk), now) == 3
    assert world.client.get("/api/books", headers={"X-API-Key": text}).status_code == 401
    assert list(api_keys.active_keys(now)) == [other]


def test_a_token_of_an_unknown_grant_is_narrowed_by_its_persons_rights(
    world: World, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    token = {"access_token": forged(claims_of(world.user.pk, scope="read write webhooks"))}
    with django_capture_on_commit_callbacks(execute=True):
        world.user.groups.clear()
    assert world.left(token) == "read"


def test_nothing_is_left_of_an_ended_grant() -> None:
    found = revocations.Revocations(frozenset(), {7: parse_scopes("read")})
    claims = claims_of(7)
    assert found.get_remaining_scopes(claims["sid"], 7, parse_scopes("read write")) == parse_scopes("read")
    assert found.get_remaining_scopes(claims["sid"], 7, parse_scopes("write")) == NO_SCOPES
    assert found.get_remaining_scopes(claims["sid"], 8, parse_scopes("read write")) == parse_scopes("read write")
