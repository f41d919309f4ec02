"""Revocations end an access token early: immediately in this process, within five seconds in every other."""

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection, transaction
from django.utils import timezone
from oauth2_provider.models import Application
from pytest_django import DjangoAssertNumQueries

from oauth import api_keys
from oauth.credentials import Credential
from oauth.models import APIKey, Authorization, ChangedRights
from oauth.scopes import NO_SCOPES, parse_scopes
from oauth.tokens import access_tokens, revocations
from oauth.tokens.revocations import RevocationList
from tests.support.forged_tokens import build_claims, forge_token
from tests.support.oauth_flows import (
    build_bearer_header,
    build_code_request,
    build_refresh_request,
    create_confidential_app,
    create_librarian,
    create_public_app,
    deactivate_without_signal,
    find_granted_scope,
    obtain_code,
    obtain_tokens,
)


class Scenario:
    """A librarian with two apps, and the tokens of each."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.user = create_librarian()
        self.group = Group.objects.get(name="Librarians")
        self.permission = Permission.objects.get(codename="change_book")
        self.bookshop, self.shelf = create_confidential_app(), create_public_app()
        self.code = obtain_code(client, self.user, self.shelf)
        self.shelf_tokens = client.post("/oauth/token", data=build_code_request(self.shelf, self.code)).json()
        self.bookshop_tokens = obtain_tokens(client, self.user, self.bookshop)

    def read_scopes(self, tokens: dict[str, Any]) -> str | None:
        """Returns the scopes that the library still grants to an access token."""
        return find_granted_scope(self.client, tokens["access_token"])


Change = Callable[[Scenario], object]


@pytest.fixture
def scenario(api: httpx.Client) -> Scenario:
    return Scenario(api)


def revoke(scenario: Scenario) -> None:
    form = {"client_id": "shelf", "token": scenario.shelf_tokens["refresh_token"]}
    assert scenario.client.post("/oauth/revoke", data=form).status_code == 200


def replay_the_code(scenario: Scenario) -> None:
    form = build_code_request(scenario.shelf, scenario.code)
    assert scenario.client.post("/oauth/token", data=form).status_code == 400


def reuse_a_refresh_token(scenario: Scenario) -> None:
    form = build_refresh_request(scenario.shelf, scenario.shelf_tokens["refresh_token"])
    assert [scenario.client.post("/oauth/refresh", data=form).status_code for _ in range(2)] == [200, 400]


def delete_the_app(scenario: Scenario) -> None:
    scenario.shelf.delete()


def delete_apps(scenario: Scenario) -> None:
    Application.objects.filter(client_id="shelf").delete()


def delete_the_user(scenario: Scenario) -> None:
    scenario.user.delete()


def delete_users(scenario: Scenario) -> None:
    User.objects.filter(pk=scenario.user.pk).delete()


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


GRANT_CHANGES: list[Change] = [revoke, replay_the_code, reuse_a_refresh_token, delete_the_app, delete_apps]
USER_CHANGES: list[Change] = [
    delete_the_user,
    delete_users,
    change_the_password,
    remove_the_password,
    deactivate,
    deactivate_with_update_fields,
]
ROLE_CHANGES: dict[str, Change] = {
    "user.groups.remove": lambda scenario: scenario.user.groups.remove(scenario.group),
    "user.groups.clear": lambda scenario: scenario.user.groups.clear(),
    "user.groups.set": lambda scenario: scenario.user.groups.set([]),
    "group.user_set.remove": lambda scenario: scenario.group.user_set.remove(scenario.user),
    "group.user_set.clear": lambda scenario: scenario.group.user_set.clear(),
    "group.permissions.remove": lambda scenario: scenario.group.permissions.remove(scenario.permission),
    "group.permissions.clear": lambda scenario: scenario.group.permissions.clear(),
    "group.permissions.set": lambda scenario: scenario.group.permissions.set([]),
    "permission.group_set.remove": lambda scenario: scenario.permission.group_set.remove(scenario.group),
    "permission.group_set.clear": lambda scenario: scenario.permission.group_set.clear(),
    "group.delete": lambda scenario: scenario.group.delete(),
    "groups.delete": lambda scenario: Group.objects.filter(pk=scenario.group.pk).delete(),
}


@pytest.mark.parametrize(
    ("change", "scopes_of_the_other"),
    [*((change, "read write") for change in GRANT_CHANGES), *((change, None) for change in USER_CHANGES)],
)
def test_one_grant_or_all_grants_of_a_user_end_immediately(
    scenario: Scenario, change: Change, scopes_of_the_other: str | None
) -> None:
    before = scenario.read_scopes(scenario.shelf_tokens), scenario.read_scopes(scenario.bookshop_tokens)
    change(scenario)
    after = scenario.read_scopes(scenario.shelf_tokens), scenario.read_scopes(scenario.bookshop_tokens)
    assert (before, after) == (("read write", "read write"), (None, scopes_of_the_other))


@pytest.mark.parametrize("change", ROLE_CHANGES.values(), ids=ROLE_CHANGES)
def test_a_lost_role_has_effect_immediately(scenario: Scenario, change: Change) -> None:
    before = scenario.read_scopes(scenario.shelf_tokens)
    change(scenario)
    assert (before, scenario.read_scopes(scenario.shelf_tokens)) == ("read write", "read")


PERMISSION_CHANGES: dict[str, Change] = {
    "user.permissions.remove": lambda scenario: scenario.user.user_permissions.remove(scenario.permission),
    "user.permissions.clear": lambda scenario: scenario.user.user_permissions.clear(),
    "user.permissions.set": lambda scenario: scenario.user.user_permissions.set([]),
    "permission.user_set.remove": lambda scenario: scenario.permission.user_set.remove(scenario.user),
    "permission.user_set.clear": lambda scenario: scenario.permission.user_set.clear(),
    "permission.user_set.set": lambda scenario: scenario.permission.user_set.set([]),
}


@pytest.mark.parametrize("change", PERMISSION_CHANGES.values(), ids=PERMISSION_CHANGES)
def test_a_lost_permission_of_a_user_has_effect_immediately(scenario: Scenario, change: Change) -> None:
    scenario.user.groups.clear()
    scenario.user.user_permissions.add(scenario.permission)
    before = scenario.read_scopes(scenario.shelf_tokens)
    change(scenario)
    assert (before, scenario.read_scopes(scenario.shelf_tokens)) == ("read write", "read")


def test_a_lost_superuser_status_has_effect_immediately(scenario: Scenario) -> None:
    scenario.user.groups.clear()
    scenario.user.is_superuser = True
    scenario.user.save()
    before = scenario.read_scopes(scenario.shelf_tokens)
    scenario.user.is_superuser = False
    scenario.user.save()
    assert (before, scenario.read_scopes(scenario.shelf_tokens)) == ("read write", "read")


def test_a_role_that_is_held_twice_is_lost_with_the_second(scenario: Scenario) -> None:
    scenario.user.user_permissions.add(scenario.permission)
    read_scopes = []
    for operation in (scenario.user.groups.clear, scenario.user.user_permissions.clear):
        operation()
        read_scopes.append(scenario.read_scopes(scenario.shelf_tokens))
    assert read_scopes == ["read write", "read"]


def test_others_keep_what_they_have(scenario: Scenario) -> None:
    tokens = obtain_tokens(scenario.client, create_librarian("other"), scenario.bookshop)
    scenario.group.user_set.remove(scenario.user)
    change_the_password(scenario)
    deactivate(scenario)
    delete_the_user(scenario)
    assert scenario.read_scopes(tokens) == "read write"


def test_a_reactivated_user_must_consent_again(scenario: Scenario) -> None:
    change_the_password(scenario)
    deactivate(scenario)
    scenario.user.is_active = True
    scenario.user.save()
    assert scenario.read_scopes(scenario.shelf_tokens) is None
    assert scenario.read_scopes(obtain_tokens(scenario.client, scenario.user, scenario.bookshop)) == "read write"


def test_other_changes_end_nothing(scenario: Scenario) -> None:
    scenario.user.email = "jane@library.example"
    scenario.user.save()
    scenario.user.save(update_fields=["last_login"])
    scenario.shelf.name = "Bookshelf"
    scenario.shelf.save()
    for tokens in (scenario.shelf_tokens, scenario.bookshop_tokens):
        assert scenario.read_scopes(tokens) == "read write"


def test_a_change_that_is_rolled_back_ends_nothing(scenario: Scenario) -> None:
    with transaction.atomic():
        deactivate(scenario)
        transaction.set_rollback(True)
    revocations.REVOCATION_LIST.invalidate()
    assert scenario.read_scopes(scenario.shelf_tokens) == "read write"


@pytest.mark.parametrize("change", [revoke, deactivate, change_the_password, ROLE_CHANGES["user.groups.clear"]])
def test_another_process_knows_before_five_seconds_have_passed(scenario: Scenario, change: Change) -> None:
    claims = access_tokens.verify_access_token(scenario.shelf_tokens["access_token"], now=timezone.now().timestamp())
    other = RevocationList()

    def read_scopes() -> frozenset[str]:
        return other.get_revocations().get_remaining_scopes(claims.sid, claims.user_id, claims.scopes) or NO_SCOPES

    before = read_scopes()
    change(scenario)
    other.read_at -= 5
    assert before == {"read", "write"}
    assert read_scopes() < before


@pytest.mark.parametrize("change", [revoke, replay_the_code, deactivate, delete_the_app])
def test_the_time_of_the_first_end_stays(scenario: Scenario, change: Change) -> None:
    revoke(scenario)
    ended = Authorization.objects.filter(ended_at__isnull=False)
    before = ended.values_list("pk", "ended_at").get()
    change(scenario)
    assert before in ended.values_list("pk", "ended_at")


def test_a_person_without_rights_keeps_no_token(scenario: Scenario) -> None:
    """The authorization has not ended: nothing told Django that the person was deactivated."""
    deactivate_without_signal(scenario.user)
    revocations.record_changed_rights(User.objects.all(), timezone.now())
    headers = build_bearer_header(scenario.shelf_tokens["access_token"])
    responses = [scenario.client.get(address, headers=headers) for address in ("/oauth/resource", "/api/books")]
    assert [response.status_code for response in responses] == [401, 401]
    assert Authorization.objects.filter(ended_at=None).count() == 2


def test_a_process_reads_the_list_again_only_after_some_seconds(
    scenario: Scenario, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    other = RevocationList()
    with django_assert_num_queries(2):
        other.get_revocations()
    with django_assert_num_queries(0):
        for _ in range(10):
            other.get_revocations()
    other.read_at -= 5
    with django_assert_num_queries(2):
        other.get_revocations()


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


def test_a_record_outlives_its_user_and_its_app(scenario: Scenario) -> None:
    delete_the_user(scenario)
    scenario.shelf.delete()
    assert Authorization.objects.filter(user=None, ended_at__isnull=False).count() == 2
    assert ChangedRights.objects.count() <= 1
    assert revocations.load_revocations(timezone.now()).ended_ids == set(
        Authorization.objects.values_list("pk", flat=True)
    )


def create_issued_key(scenario: Scenario, **issuer: Any) -> tuple[APIKey, str]:
    """Creates a key with a credential that has this key or this authorization."""
    credential = Credential("any", parse_scopes("read"), 0, **issuer)
    return api_keys.create_key(scenario.user, "by another", parse_scopes("read"), timezone.now(), creator=credential)


@pytest.mark.parametrize("change", [*GRANT_CHANGES, *USER_CHANGES])
def test_keys_made_by_a_token_end_with_its_grant(scenario: Scenario, change: Change) -> None:
    claims = access_tokens.verify_access_token(scenario.shelf_tokens["access_token"], now=timezone.now().timestamp())
    _, text = create_issued_key(scenario, authorization=claims.sid)
    headers = {"X-API-Key": text}
    before = scenario.client.get("/api/books", headers=headers).status_code
    change(scenario)
    assert (before, scenario.client.get("/api/books", headers=headers).status_code) == (200, 401)


def test_a_revoked_key_ends_the_keys_made_with_it(scenario: Scenario) -> None:
    now = timezone.now()
    first, _ = api_keys.create_key(scenario.user, "first", parse_scopes("read"), now)
    second, _ = create_issued_key(scenario, key=first.pk)
    _, text = create_issued_key(scenario, key=second.pk)
    other, _ = api_keys.create_key(scenario.user, "other", parse_scopes("read"), now)
    assert api_keys.revoke_keys(APIKey.objects.filter(pk=first.pk), now) == 3
    assert scenario.client.get("/api/books", headers={"X-API-Key": text}).status_code == 401
    assert list(api_keys.get_active_keys(now)) == [other]


def test_a_token_of_an_unknown_grant_is_limited_to_the_rights_of_its_user(scenario: Scenario) -> None:
    token = {"access_token": forge_token(build_claims(scenario.user.pk, scope="read write webhooks"))}
    scenario.user.groups.clear()
    assert scenario.read_scopes(token) == "read"


def test_nothing_is_left_of_an_ended_grant() -> None:
    state = revocations.Revocations(frozenset(), {7: parse_scopes("read")})
    claims = build_claims(7)
    assert state.get_remaining_scopes(claims["sid"], 7, parse_scopes("read write")) == parse_scopes("read")
    assert state.get_remaining_scopes(claims["sid"], 7, parse_scopes("write")) == NO_SCOPES
    assert state.get_remaining_scopes(claims["sid"], 8, parse_scopes("read write")) == parse_scopes("read write")
