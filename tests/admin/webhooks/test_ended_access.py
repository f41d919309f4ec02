"""An endpoint is disabled when the app's access or the API key that made it ends, in whatever way that happens."""

from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import Application

from library_site.jobs.expiry import delete_by_kind
from oauth import api_keys
from oauth.expiry import iter_expired
from oauth.models import CONSENT_LIFETIME, APIKey, Authorization
from oauth.tokens import revocations
from tests.support.admin_pages import submit_action
from tests.support.endpoints import claim_deliveries, create_owner, publish_event
from tests.support.oauth_flows import (
    build_bearer_header,
    build_code_request,
    build_refresh_request,
    create_key_header,
    create_public_app,
    deactivate_without_signal,
    obtain_code,
)
from webhooks.endpoints import ENDED_REASON, change_endpoint, disable_ended
from webhooks.models import Delivery, Endpoint

HOOKS, KEYS = "/api/v2/webhooks", "/api/v2/api-keys"
ACCESS, APPS, API_KEYS = "/admin/oauth/authorization/", "/admin/oauth2_provider/application/", "/admin/oauth/apikey/"
WAITING_PERIOD = timedelta(days=31)


class Scenario:
    """An owner with an app and an API key, an endpoint of each, and one of a key that each of them made."""

    def __init__(self, api: httpx.Client, browser: Client) -> None:
        self.api, self.browser = api, browser
        self.owner = create_owner()
        self.app = create_public_app("shelf", "read webhooks")
        self.code = obtain_code(api, self.owner, self.app, scope="webhooks")
        self.tokens = api.post("/oauth/token", data=build_code_request(self.app, self.code)).json()
        api.cookies.clear()
        self.app_header = build_bearer_header(self.tokens["access_token"])
        self.key_header = create_key_header(self.owner, "webhooks")
        self.key = APIKey.objects.get()
        issuers = (self.app_header, self.key_header)
        self.app_endpoints, self.key_endpoints = ([self.make(header), self.make_by_key(header)] for header in issuers)
        publish_event()

    def make(self, header: dict[str, str]) -> int:
        fields = {"url": "https://receiver.example/hook", "events": ["*"]}
        endpoint_id: int = self.api.post(HOOKS, json=fields, headers=header).json()["id"]
        return endpoint_id

    def make_by_key(self, creator: dict[str, str]) -> int:
        fields = {"name": "Child", "scopes": "webhooks"}
        return self.make({"X-API-Key": self.api.post(KEYS, json=fields, headers=creator).json()["key"]})

    def read_states(self) -> dict[int, tuple[str, str]]:
        return {pk: (state, reason) for pk, state, reason in Endpoint.objects.values_list("pk", "state", "reason")}


Change = Callable[[Scenario], object]


@pytest.fixture
def scenario(api: httpx.Client, client: Client) -> Scenario:
    client.force_login(User.objects.create_user("root", is_staff=True, is_superuser=True))
    return Scenario(api, client)


def revoke(scenario: Scenario) -> None:
    form = {"client_id": "shelf", "token": scenario.tokens["refresh_token"]}
    assert scenario.api.post("/oauth/revoke", data=form).status_code == 200


def replay_the_code(scenario: Scenario) -> None:
    response = scenario.api.post("/oauth/token", data=build_code_request(scenario.app, scenario.code))
    assert response.status_code == 400


def reuse_a_refresh_token(scenario: Scenario) -> None:
    form = build_refresh_request(scenario.app, scenario.tokens["refresh_token"])
    assert [scenario.api.post("/oauth/refresh", data=form).status_code for _ in range(2)] == [200, 400]


def end_on_the_accounts_page(scenario: Scenario) -> None:
    scenario.browser.force_login(scenario.owner)
    scenario.browser.post("/accounts/apps", {"app": "shelf"})


def end_in_the_admin(scenario: Scenario) -> None:
    submit_action(scenario.browser, ACCESS, "end", Authorization.objects.get())


def delete_the_app_in_the_admin(scenario: Scenario) -> None:
    scenario.browser.post(f"{APPS}{scenario.app.pk}/delete/", {"post": "yes"})
    assert not Application.objects.filter(client_id="shelf").exists()


def take_the_scope_from_the_app(scenario: Scenario) -> None:
    form = {"name": "Shelf", "redirect_uris": scenario.app.redirect_uris, "scopes": ["read"]}
    scenario.browser.post(f"{APPS}{scenario.app.pk}/change/", form)


def change_the_password(scenario: Scenario) -> None:
    scenario.owner.set_password("a new one, long enough")
    scenario.owner.save()


def delete_the_authorization(scenario: Scenario) -> None:
    Authorization.objects.all().delete()


def revoke_the_key(scenario: Scenario) -> None:
    response = scenario.api.delete(f"{KEYS}/{scenario.key.prefix}", headers=scenario.key_header)
    assert response.status_code == 204


def revoke_the_key_in_the_admin(scenario: Scenario) -> None:
    submit_action(scenario.browser, API_KEYS, "revoke", scenario.key)


def delete_the_key(scenario: Scenario) -> None:
    APIKey.objects.filter(pk=scenario.key.pk).delete()


APP_CHANGES: list[Change] = [
    revoke,
    replay_the_code,
    reuse_a_refresh_token,
    end_on_the_accounts_page,
    end_in_the_admin,
    delete_the_app_in_the_admin,
    take_the_scope_from_the_app,
    change_the_password,
    delete_the_authorization,
]
KEY_CHANGES: list[Change] = [revoke_the_key, revoke_the_key_in_the_admin, delete_the_key]


@pytest.mark.parametrize("change", [*APP_CHANGES, *KEY_CHANGES])
def test_what_ended_access_made_is_disabled_and_sent_nothing(scenario: Scenario, change: Change) -> None:
    ended, others = scenario.app_endpoints, scenario.key_endpoints
    if change in KEY_CHANGES:
        ended, others = others, ended
    change(scenario)
    publish_event()
    states = dict.fromkeys(ended, ("disabled", ENDED_REASON)) | dict.fromkeys(others, ("active", ""))
    assert scenario.read_states() == states
    # Neither what waited before the end, nor what happened after it.
    assert {leased.endpoint_id for leased in claim_deliveries()} == set(others)
    assert Delivery.objects.filter(endpoint__in=ended).count() == 2


def test_a_deactivated_owner_is_sent_nothing_and_the_apps_must_be_let_in_again(scenario: Scenario) -> None:
    scenario.owner.is_active = False
    scenario.owner.save()
    assert claim_deliveries() == []
    scenario.owner.is_active = True
    scenario.owner.save()
    assert {leased.endpoint_id for leased in claim_deliveries()} == set(scenario.key_endpoints)
    assert scenario.read_states()[scenario.app_endpoints[0]] == ("disabled", ENDED_REASON)


def test_a_lost_role_holds_deliveries_until_it_is_given_back(scenario: Scenario) -> None:
    permission = Permission.objects.get(content_type__app_label="webhooks", codename="change_endpoint")
    scenario.owner.user_permissions.clear()
    assert claim_deliveries() == []
    scenario.owner.user_permissions.add(permission)
    assert {leased.endpoint_id for leased in claim_deliveries()} == {*scenario.app_endpoints, *scenario.key_endpoints}


def test_the_endpoints_of_a_deleted_owner_are_disabled(scenario: Scenario) -> None:
    scenario.owner.delete()
    assert set(scenario.read_states().values()) == {("disabled", ENDED_REASON)}
    assert claim_deliveries() == []


def expire(scenario: Scenario) -> None:
    """Moves all ends to this moment, as if the time until then had passed."""
    Endpoint.objects.update(expires_at=Now())


def test_an_endpoint_is_sent_nothing_from_the_end_of_its_time_on(scenario: Scenario) -> None:
    expire(scenario)
    publish_event()
    assert claim_deliveries() == []
    assert Delivery.objects.count() == len(scenario.read_states())


def test_an_endpoint_lasts_as_long_as_what_made_it(scenario: Scenario) -> None:
    end = Authorization.objects.get().created_at + CONSENT_LIFETIME
    assert set(Endpoint.objects.filter(pk__in=scenario.app_endpoints).values_list("expires_at", flat=True)) == {end}
    soon = timezone.now() + timedelta(hours=1)
    _, text = api_keys.create_key(scenario.owner, "short", frozenset({"webhooks"}), timezone.now(), expires_at=soon)
    assert Endpoint.objects.get(pk=scenario.make({"X-API-Key": text})).expires_at == soon


def end_without_handlers(scenario: Scenario) -> None:
    """As a process with an older release does."""
    Authorization.objects.update(ended_at=timezone.now())
    APIKey.objects.update(revoked_at=timezone.now())


@pytest.mark.parametrize("change", [expire, end_without_handlers])
def test_what_ended_unnoticed_is_disabled_regularly(scenario: Scenario, change: Change) -> None:
    change(scenario)
    disable_ended()
    assert set(scenario.read_states().values()) == {("disabled", ENDED_REASON)}
    assert Endpoint.objects.filter(expires_at=None).count() == 0


def test_the_regular_search_leaves_others_alone(scenario: Scenario) -> None:
    disable_ended()
    assert set(scenario.read_states().values()) == {("active", "")}


@pytest.mark.usefixtures("transactional_db")
def test_the_worker_disables_what_has_ended(scenario: Scenario) -> None:
    expire(scenario)
    call_command("deliver_webhooks", once=True)
    assert set(scenario.read_states().values()) == {("disabled", ENDED_REASON)}


def test_the_first_end_stays(scenario: Scenario) -> None:
    revoke(scenario)
    before = list(Endpoint.objects.order_by("pk").values_list("expires_at", flat=True))
    delete_the_app_in_the_admin(scenario)
    assert list(Endpoint.objects.order_by("pk").values_list("expires_at", flat=True)) == before


def test_an_end_says_why_where_the_endpoint_was_disabled_before(scenario: Scenario) -> None:
    for endpoint in Endpoint.objects.all():
        change_endpoint(endpoint, {"state": "disabled", "reason": "It failed."})
    revoke(scenario)
    assert [scenario.read_states()[pk] for pk in scenario.app_endpoints] == [("disabled", ENDED_REASON)] * 2


def test_a_deleted_endpoint_stays_deleted(scenario: Scenario) -> None:
    Endpoint.objects.update(state="deleted")
    revoke(scenario)
    assert set(scenario.read_states().values()) == {("deleted", "")}


def test_a_promoted_secret_enables_no_ended_endpoint(scenario: Scenario) -> None:
    [pk, _] = scenario.app_endpoints
    Endpoint.objects.filter(pk=pk).update(state="disabled", reason="Its secret cannot be read: give it a new one.")
    revoke(scenario)
    endpoint = Endpoint.objects.get(pk=pk)
    for action in ("rotate", "promote"):
        submit_action(scenario.browser, "/admin/webhooks/endpoint/", action, endpoint)
    assert endpoint.secrets.filter(state="pending").count() == 0
    assert scenario.read_states()[pk] == ("disabled", ENDED_REASON)


def test_an_endpoint_outlives_the_record_of_what_made_it(scenario: Scenario) -> None:
    revoke(scenario)
    revoke_the_key(scenario)
    delete_by_kind(iter_expired(timezone.now() + WAITING_PERIOD))
    assert (Authorization.objects.count(), APIKey.objects.count()) == (0, 0)
    assert set(scenario.read_states().values()) == {("disabled", ENDED_REASON)}
    assert Endpoint.objects.filter(creator=None, authorization=None).count() == len(scenario.read_states())


def test_expiry_disables_what_expired_unnoticed(scenario: Scenario) -> None:
    now = timezone.now()
    delete_by_kind(iter_expired(now + CONSENT_LIFETIME + revocations.RETENTION + WAITING_PERIOD))
    assert Authorization.objects.count() == 0
    assert [scenario.read_states()[pk] for pk in scenario.app_endpoints] == [("disabled", ENDED_REASON)] * 2


def test_the_owner_may_be_deactivated_behind_djangos_back(scenario: Scenario) -> None:
    deactivate_without_signal(scenario.owner)
    assert claim_deliveries() == []
