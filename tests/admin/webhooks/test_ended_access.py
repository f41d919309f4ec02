"""An endpoint is disabled when the app's access or the API key that made it ends, in whatever way that happens."""

from collections.abc import Callable
from datetime import timedelta
from threading import Event
from uuid import UUID

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import Application

from library_site.jobs.expiry import delete_by_kind
from oauth import api_keys
from oauth.credentials import Credential
from oauth.expiry import iter_expired
from oauth.issuers import lock_issuer
from oauth.models import CONSENT_LIFETIME, APIKey, Authorization
from oauth.tokens import revocations
from tests.support.admin_pages import submit_action
from tests.support.endpoints import claim_deliveries, create_endpoint, create_owner, publish_event
from tests.support.oauth_flows import create_public_app, deactivate_without_signal
from tests.support.webhooks_admin import ENDPOINTS
from webhooks.endpoints import ENDED_REASON, change_endpoint
from webhooks.models import Delivery, Endpoint
from webhooks.worker import end_expired

SCOPES = frozenset({"webhooks"})
WAITING_PERIOD = timedelta(days=31)


class Scenario:
    """An owner with an app and an API key, an endpoint of each, and one of a key that each of them made."""

    def __init__(self) -> None:
        self.owner, self.now = create_owner(), timezone.now()
        self.app = create_public_app("shelf", "read webhooks")
        self.authorization = Authorization.objects.create(
            user=self.owner, application=self.app, scopes="webhooks", created_at=self.now
        )
        self.key, _ = api_keys.create_key(self.owner, "Own", SCOPES, self.now)
        credentials = self.build_credential(authorization=self.authorization.pk), self.build_credential(self.key.pk)
        self.app_endpoints, self.key_endpoints = ([self.make(one), self.make_by_key(one)] for one in credentials)
        publish_event()

    def build_credential(self, key: int | None = None, authorization: UUID | None = None) -> Credential:
        return Credential("it", SCOPES, self.owner.pk, key, authorization)

    def make(self, credential: Credential) -> int:
        with transaction.atomic():
            return create_endpoint(self.owner, **lock_issuer(credential, self.now)._asdict()).pk

    def make_by_key(self, creator: Credential) -> int:
        key, _ = api_keys.create_key(self.owner, "Child", SCOPES, self.now, creator=creator)
        return self.make(self.build_credential(key.pk, key.authorization_id))

    def read_states(self) -> dict[int, tuple[str, str]]:
        return {pk: (state, reason) for pk, state, reason in Endpoint.objects.values_list("pk", "state", "reason")}


Change = Callable[[Scenario], object]


@pytest.fixture
def scenario(db: None) -> Scenario:
    return Scenario()


def revoke(scenario: Scenario) -> None:
    """As each page and endpoint does that ends the access of an app."""
    revocations.revoke_authorizations(Authorization.objects.all(), scenario.now)


def change_the_password(scenario: Scenario) -> None:
    scenario.owner.set_password("a new one, long enough")
    scenario.owner.save()


APP_CHANGES: dict[str, Change] = {
    "the access is revoked": revoke,
    "the password is changed": change_the_password,
    "the app is deleted": lambda scenario: Application.objects.filter(pk=scenario.app.pk).delete(),
    "the access is deleted": lambda scenario: scenario.authorization.delete(),
}
KEY_CHANGES: dict[str, Change] = {
    "the key is revoked": lambda scenario: api_keys.revoke_keys(
        APIKey.objects.filter(pk=scenario.key.pk), scenario.now
    ),
    "the key is deleted": lambda scenario: scenario.key.delete(),
}


@pytest.mark.parametrize("change", [*APP_CHANGES, *KEY_CHANGES])
def test_what_ended_access_made_is_disabled_and_sent_nothing(scenario: Scenario, change: str) -> None:
    ended, others = scenario.app_endpoints, scenario.key_endpoints
    if change in KEY_CHANGES:
        ended, others = others, ended
    {**APP_CHANGES, **KEY_CHANGES}[change](scenario)
    publish_event()
    states = dict.fromkeys(ended, ("disabled", ENDED_REASON)) | dict.fromkeys(others, ("active", ""))
    assert scenario.read_states() == states
    # Neither what waited before the end, nor what happened after it.
    assert {leased.endpoint_id for leased in claim_deliveries()} == set(others)
    assert Delivery.objects.filter(endpoint__in=ended).count() == 2


def test_an_app_that_loses_the_scope_loses_its_endpoints(scenario: Scenario, root: Client) -> None:
    form = {"name": "Shelf", "redirect_uris": scenario.app.redirect_uris, "scopes": ["read"]}
    root.post(f"/admin/oauth2_provider/application/{scenario.app.pk}/change/", form)
    assert {scenario.read_states()[pk] for pk in scenario.app_endpoints} == {("disabled", ENDED_REASON)}


def test_a_deactivated_owner_is_sent_nothing_and_the_apps_must_be_let_in_again(scenario: Scenario) -> None:
    scenario.owner.is_active = False
    scenario.owner.save()
    assert claim_deliveries() == []
    scenario.owner.is_active = True
    scenario.owner.save()
    assert {leased.endpoint_id for leased in claim_deliveries()} == set(scenario.key_endpoints)
    assert scenario.read_states()[scenario.app_endpoints[0]] == ("disabled", ENDED_REASON)


def test_the_owner_may_be_deactivated_behind_djangos_back(scenario: Scenario) -> None:
    deactivate_without_signal(scenario.owner)
    assert claim_deliveries() == []


def test_the_endpoints_of_a_deleted_owner_are_disabled(scenario: Scenario) -> None:
    scenario.owner.delete()
    assert set(scenario.read_states().values()) == {("disabled", ENDED_REASON)}
    assert claim_deliveries() == []


def expire(scenario: Scenario) -> None:
    """Moves all ends to this moment, as if the time until then had passed."""
    Endpoint.objects.update(expires_at=Now())


def test_an_endpoint_lasts_as_long_as_what_made_it(scenario: Scenario) -> None:
    end = scenario.now + CONSENT_LIFETIME
    assert set(Endpoint.objects.filter(pk__in=scenario.app_endpoints).values_list("expires_at", flat=True)) == {end}
    soon = timezone.now() + timedelta(hours=1)
    key, _ = api_keys.create_key(scenario.owner, "short", SCOPES, scenario.now, expires_at=soon)
    assert Endpoint.objects.get(pk=scenario.make(scenario.build_credential(key.pk))).expires_at == soon


def test_an_endpoint_is_sent_nothing_from_the_end_of_its_time_on(scenario: Scenario) -> None:
    expire(scenario)
    publish_event()
    assert claim_deliveries() == []
    assert Delivery.objects.count() == len(scenario.read_states())


def test_the_worker_disables_what_has_ended(scenario: Scenario) -> None:
    for change, state in ((lambda _: None, ("active", "")), (expire, ("disabled", ENDED_REASON))):
        change(scenario)
        end_expired(Event())
        assert set(scenario.read_states().values()) == {state}


def test_the_first_end_stays(scenario: Scenario) -> None:
    revoke(scenario)
    before = list(Endpoint.objects.order_by("pk").values_list("expires_at", flat=True))
    scenario.app.delete()
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


def test_a_promoted_secret_enables_no_ended_endpoint(scenario: Scenario, root: Client) -> None:
    [pk, _] = scenario.app_endpoints
    Endpoint.objects.filter(pk=pk).update(state="disabled", reason="Its secret cannot be read: give it a new one.")
    revoke(scenario)
    endpoint = Endpoint.objects.get(pk=pk)
    for action in ("rotate", "promote"):
        submit_action(root, ENDPOINTS, action, endpoint)
    assert endpoint.secrets.filter(state="pending").count() == 0
    assert scenario.read_states()[pk] == ("disabled", ENDED_REASON)


def test_an_endpoint_outlives_the_record_of_what_made_it(scenario: Scenario) -> None:
    revoke(scenario)
    KEY_CHANGES["the key is revoked"](scenario)
    delete_by_kind(iter_expired(timezone.now() + WAITING_PERIOD))
    assert (Authorization.objects.count(), APIKey.objects.count()) == (0, 0)
    assert set(scenario.read_states().values()) == {("disabled", ENDED_REASON)}
    assert Endpoint.objects.filter(creator=None, authorization=None).count() == len(scenario.read_states())


def test_expiry_disables_what_expired_unnoticed(scenario: Scenario) -> None:
    now = timezone.now()
    delete_by_kind(iter_expired(now + CONSENT_LIFETIME + revocations.RETENTION + WAITING_PERIOD))
    assert Authorization.objects.count() == 0
    assert [scenario.read_states()[pk] for pk in scenario.app_endpoints] == [("disabled", ENDED_REASON)] * 2
