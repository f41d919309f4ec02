"""Revocations end an access token early: immediately in this process, within five seconds in every other."""

from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection, transaction
from django.utils import timezone
from oauth2_provider.models import Application

from oauth.authentication import verify_token
from oauth.models import Authorization, ChangedRights
from oauth.scopes import (
    NO_PERMISSIONS,
    NO_SCOPES,
    Rights,
    format_scopes,
    get_user_rights,
)
from oauth.tokens import access_tokens, revocations
from oauth.tokens.revocations import RevocationList
from tests.support.forged_tokens import build_claims, forge_token
from tests.support.oauth_flows import (
    build_bearer_header,
    create_confidential_app,
    create_librarian,
    create_public_app,
    deactivate_without_signal,
)

CHANGE_BOOK = "books.change_book"


class Scenario:
    """A librarian with two apps, and a token of each."""

    def __init__(self) -> None:
        self.user = create_librarian()
        self.group = Group.objects.get(name="Librarians")
        self.permission = Permission.objects.get(codename="change_book")
        self.bookshop, self.shelf = create_confidential_app(), create_public_app()
        self.shelf_token, self.bookshop_token = (self.create_token(app) for app in (self.shelf, self.bookshop))

    def create_token(self, app: Application) -> str:
        authorization = Authorization.objects.create(
            user=self.user, application=app, scopes="read write", created_at=timezone.now()
        )
        permissions = sorted(get_user_rights(self.user.pk).permissions)
        return forge_token(build_claims(self.user.pk, sid=str(authorization.pk), entitlements=permissions))


def read_scopes(token: str) -> str | None:
    """Returns the scopes that the library still grants to an access token; `write` if it still changes books."""
    try:
        _, rights = verify_token(token, timezone.now().timestamp())
    except access_tokens.InvalidToken:
        return None
    return format_scopes(rights.scopes - (NO_SCOPES if CHANGE_BOOK in rights.permissions else {"write"}))


Change = Callable[[Scenario], object]


@pytest.fixture
def scenario(db: None) -> Scenario:
    return Scenario()


def revoke(scenario: Scenario) -> None:
    revocations.revoke_authorizations(Authorization.objects.filter(application=scenario.shelf), timezone.now())


def change_the_password(scenario: Scenario) -> None:
    scenario.user.set_password("a new one, long enough")
    scenario.user.save()


def remove_the_password(scenario: Scenario) -> None:
    scenario.user.set_unusable_password()
    scenario.user.save()


def deactivate(scenario: Scenario) -> None:
    scenario.user.is_active = False
    scenario.user.save()


def deactivate_with_update_fields(scenario: Scenario) -> None:
    scenario.user.is_active = False
    scenario.user.save(update_fields=["is_active"])


GRANT_CHANGES: dict[str, Change] = {
    "an end": revoke,
    "app.delete": lambda scenario: scenario.shelf.delete(),
    "apps.delete": lambda scenario: Application.objects.filter(pk=scenario.shelf.pk).delete(),
}
USER_CHANGES: dict[str, Change] = {
    "user.delete": lambda scenario: scenario.user.delete(),
    "users.delete": lambda scenario: User.objects.filter(pk=scenario.user.pk).delete(),
    "another password": change_the_password,
    "no password": remove_the_password,
    "a deactivation": deactivate,
    "a deactivation with update_fields": deactivate_with_update_fields,
}
ROLE_CHANGES: dict[str, Change] = {
    "user.groups.remove": lambda scenario: scenario.user.groups.remove(scenario.group),
    "user.groups.clear": lambda scenario: scenario.user.groups.clear(),
    "user.groups.set": lambda scenario: scenario.user.groups.set([]),
    "group.user_set.remove": lambda scenario: scenario.group.user_set.remove(scenario.user),
    "group.user_set.clear": lambda scenario: scenario.group.user_set.clear(),
    "group.permissions.remove": lambda scenario: scenario.group.permissions.remove(scenario.permission),
    "group.permissions.clear": lambda scenario: scenario.group.permissions.clear(),
    "permission.group_set.remove": lambda scenario: scenario.permission.group_set.remove(scenario.group),
    "permission.group_set.clear": lambda scenario: scenario.permission.group_set.clear(),
    "group.delete": lambda scenario: scenario.group.delete(),
    "groups.delete": lambda scenario: Group.objects.filter(pk=scenario.group.pk).delete(),
}
PERMISSION_CHANGES: dict[str, Change] = {
    "user.permissions.remove": lambda scenario: scenario.user.user_permissions.remove(scenario.permission),
    "user.permissions.clear": lambda scenario: scenario.user.user_permissions.clear(),
    "permission.user_set.remove": lambda scenario: scenario.permission.user_set.remove(scenario.user),
    "permission.user_set.clear": lambda scenario: scenario.permission.user_set.clear(),
}


def list_scopes_after(scenario: Scenario, changes: dict[str, Change]) -> dict[str, Any]:
    """Returns the scopes of both tokens after each change, which is taken back."""
    scopes = {}
    for name, change in {"none": lambda _: None, **changes}.items():
        with transaction.atomic():
            change(deepcopy(scenario))
            scopes[name] = read_scopes(scenario.shelf_token), read_scopes(scenario.bookshop_token)
            transaction.set_rollback(True)
        revocations.REVOCATION_LIST.invalidate()
    assert scopes.pop("none") == ("read write", "read write")
    return scopes


def test_one_grant_or_all_grants_of_a_user_end_immediately(scenario: Scenario) -> None:
    assert list_scopes_after(scenario, GRANT_CHANGES) == dict.fromkeys(GRANT_CHANGES, (None, "read write"))
    assert list_scopes_after(scenario, USER_CHANGES) == dict.fromkeys(USER_CHANGES, (None, None))


def test_a_lost_role_or_permission_has_effect_immediately(scenario: Scenario) -> None:
    assert list_scopes_after(scenario, ROLE_CHANGES) == dict.fromkeys(ROLE_CHANGES, ("read", "read"))
    scenario.user.user_permissions.add(scenario.permission)
    scenario.user.groups.clear()
    after = list_scopes_after(scenario, PERMISSION_CHANGES)
    assert after == dict.fromkeys(PERMISSION_CHANGES, ("read", "read"))


@pytest.mark.parametrize("update_fields", [None, ["is_superuser"]])
def test_a_lost_superuser_status_has_effect_immediately(scenario: Scenario, update_fields: list[str] | None) -> None:
    scenario.user.groups.clear()
    scopes = []
    for is_superuser in (True, False):
        scenario.user.is_superuser = is_superuser
        scenario.user.save(update_fields=update_fields)
        scopes.append(read_scopes(scenario.shelf_token))
    assert scopes == ["read write", "read"]


def test_the_tokens_of_other_users_keep_their_scopes(scenario: Scenario) -> None:
    token = forge_token(build_claims(create_librarian("other").pk))
    # A right that was given is a change of rights, too.
    ChangedRights.objects.all().delete()
    scenario.group.user_set.remove(scenario.user)
    change_the_password(scenario)
    deactivate(scenario)
    scenario.user.delete()
    assert read_scopes(token) == "read write"


def test_a_reactivated_user_must_consent_again(scenario: Scenario) -> None:
    change_the_password(scenario)
    deactivate(scenario)
    scenario.user.is_active = True
    scenario.user.save()
    assert read_scopes(scenario.shelf_token) is None
    assert read_scopes(scenario.create_token(scenario.shelf)) == "read write"


def test_a_new_address_or_a_new_name_ends_no_token(scenario: Scenario) -> None:
    scenario.user.email = "jane@library.example"
    scenario.user.save()
    scenario.user.save(update_fields=["last_login"])
    scenario.shelf.name = "Bookshelf"
    scenario.shelf.save()
    assert [read_scopes(token) for token in (scenario.shelf_token, scenario.bookshop_token)] == ["read write"] * 2


def test_another_process_knows_before_five_seconds_have_passed(scenario: Scenario) -> None:
    claims = access_tokens.verify_access_token(scenario.shelf_token, now=timezone.now().timestamp())
    other, rights = RevocationList(), []
    for change in (lambda _: None, ROLE_CHANGES["user.groups.clear"], revoke):
        change(scenario)
        other.read_at -= 5
        rights.append(other.get_revocations().find_remaining_rights(claims))
    assert rights == [claims.rights, Rights(frozenset({"read"}), NO_PERMISSIONS), None]


def test_access_that_ends_again_keeps_the_time_of_its_end(scenario: Scenario) -> None:
    revoke(scenario)
    ended = Authorization.objects.filter(ended_at__isnull=False)
    before = ended.values_list("pk", "ended_at").get()
    deactivate(scenario)
    assert before in ended.values_list("pk", "ended_at")


def test_a_person_without_rights_keeps_no_token(api: httpx.Client, scenario: Scenario) -> None:
    """The authorization has not ended: nothing told Django that the person was deactivated."""
    deactivate_without_signal(scenario.user)
    revocations.record_changed_rights(User.objects.all(), timezone.now())
    headers = build_bearer_header(scenario.shelf_token)
    assert [api.get(path, headers=headers).status_code for path in ("/oauth/resource", "/api/books")] == [401, 401]
    assert Authorization.objects.filter(ended_at=None).count() == 2


def test_a_list_is_as_old_as_the_beginning_of_its_reading(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was revoked while it was read may be missing."""
    now, statements = [100.0], []
    monkeypatch.setattr(revocations, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def read_slowly(execute: Any, sql: str, *arguments: Any) -> Any:
        statements.append(sql)
        now[0] += 2
        return execute(sql, *arguments)

    with connection.execute_wrapper(read_slowly):
        other = RevocationList()
        other.get_revocations()
        now[0] += 0.5
        other.get_revocations()
    assert len(statements) == 4


def test_the_list_holds_only_what_valid_tokens_need(scenario: Scenario) -> None:
    """A grant that ended at 12:00 had its last token until 13:00."""
    revoke(scenario)
    scenario.user.groups.clear()
    now = timezone.now()
    for hours, entries in ((0, 1), (1, 1), (2, 0)):
        state = revocations.load_revocations(now + timedelta(hours=hours))
        assert (len(state.ended_ids), len(state.rights)) == (entries, entries)


def test_ended_access_is_remembered_after_its_user_and_its_app_are_deleted(scenario: Scenario) -> None:
    scenario.user.delete()
    scenario.shelf.delete()
    assert Authorization.objects.filter(user=None, ended_at__isnull=False).count() == 2
    assert ChangedRights.objects.count() <= 1
    assert revocations.load_revocations(timezone.now()).ended_ids == set(
        Authorization.objects.values_list("pk", flat=True)
    )


def test_the_rights_that_an_earlier_release_stored_limit_the_scopes_alone(scenario: Scenario) -> None:
    """The tokens of that release have no permissions, so there is none to take away."""
    ChangedRights.objects.create(user_id=scenario.user.pk, scopes="write", changed_at=timezone.now())
    revocations.REVOCATION_LIST.invalidate()
    assert read_scopes(scenario.shelf_token) == "write"
