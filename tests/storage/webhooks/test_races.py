"""Two transactions at the same time make endpoints and deliveries, and end the access that makes them."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from oauth.credentials import Credential
from oauth.issuers import lock_issuer
from tests.support.concurrency import start_concurrently
from tests.support.creators import KINDS, create_creator
from tests.support.endpoints import OLD_SECRET, claim_deliveries, create_endpoint, create_owner, publish_event
from webhooks import endpoints
from webhooks.endpoints import (
    MAX_ENDPOINTS_PER_USER,
    NewSecretNeeded,
    TooManyEndpoints,
    TooManyWaiting,
    UnusableSecret,
)
from webhooks.models import Delivery, Endpoint

pytestmark = pytest.mark.usefixtures("transactional_db")
VALUES: dict[str, Any] = {"url": "https://receiver.example/hook"}


@pytest.fixture
def owner(transactional_db: None) -> User:
    return create_owner()


@transaction.atomic
def make_endpoint(owner: User, credential: Credential | None = None) -> Endpoint:
    now = timezone.now()
    endpoint, _ = endpoints.create_endpoint(owner, VALUES, None, now, lock_issuer(credential, now))
    return endpoint


@transaction.atomic
def ping(endpoint: Endpoint) -> None:
    endpoints.ping([endpoint], timezone.now())


def test_a_user_gets_no_more_endpoints_than_the_maximum(owner: User) -> None:
    Endpoint.objects.bulk_create(
        Endpoint(owner=owner, created_at=timezone.now(), **VALUES) for _ in range(MAX_ENDPOINTS_PER_USER - 1)
    )
    with transaction.atomic():
        make_endpoint(owner)
        second = start_concurrently(lambda: make_endpoint(owner))
    with pytest.raises(TooManyEndpoints):
        second.result()
    assert Endpoint.objects.count() == MAX_ENDPOINTS_PER_USER


def test_a_secret_that_is_added_meanwhile_suits_the_new_form(owner: User) -> None:
    endpoint = make_endpoint(owner)

    @transaction.atomic
    def add_old_secret() -> None:
        endpoints.add_endpoint_secret(endpoint, OLD_SECRET, timezone.now())

    with transaction.atomic():
        endpoints.change_endpoint(endpoint, {"form": "C"})
        second = start_concurrently(add_old_secret)
    with pytest.raises(UnusableSecret):
        second.result()
    assert endpoint.secrets.count() == 1


def test_a_form_that_is_changed_meanwhile_suits_the_new_secret(owner: User) -> None:
    endpoint = make_endpoint(owner)

    @transaction.atomic
    def change_form() -> None:
        endpoints.change_endpoint(endpoint, {"form": "C"})

    with transaction.atomic():
        endpoints.add_endpoint_secret(endpoint, OLD_SECRET, timezone.now())
        second = start_concurrently(change_form)
    with pytest.raises(NewSecretNeeded):
        second.result()
    assert Endpoint.objects.get().form == "B"


@pytest.mark.parametrize("kind", KINDS[:2])
def test_an_endpoint_that_is_enabled_meanwhile_ends_too(owner: User, kind: str) -> None:
    creator = create_creator(kind, owner, "webhooks")
    endpoint = make_endpoint(owner, creator.credential)
    Endpoint.objects.update(state="disabled")
    with transaction.atomic():
        endpoints.change_endpoint(endpoint, {"state": "active"}, lock_issuer(creator.credential, timezone.now()))
        second = start_concurrently(creator.end)
    second.result()
    assert Endpoint.objects.get().state == "disabled"


def test_an_endpoint_that_is_made_while_the_right_is_lost_is_sent_nothing(owner: User) -> None:
    with transaction.atomic():
        owner.user_permissions.clear()
        second = start_concurrently(lambda: make_endpoint(owner))
    second.result()
    publish_event()
    assert claim_deliveries() == []


def test_an_owner_gets_no_more_waiting_deliveries_than_the_maximum(owner: User, settings: Settings) -> None:
    settings.WEBHOOKS_MAX_WAITING = 1
    first, other = create_endpoint(owner), create_endpoint(owner)
    with transaction.atomic():
        ping(first)
        second = start_concurrently(lambda: ping(other))
    with pytest.raises(TooManyWaiting):
        second.result()
    assert Delivery.objects.get().endpoint == first


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time.")
def test_deliveries_of_new_events_do_not_wait_for_a_replay(owner: User) -> None:
    endpoint = create_endpoint(owner)
    with transaction.atomic():
        ping(endpoint)
        start_concurrently(publish_event).result()
    assert Delivery.objects.count() == 2
