"""People who listen, and their endpoints, as the tests of webhooks need them."""

from typing import Any

from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.utils import timezone

from books.events import CREATED
from oauth import api_keys
from webhooks import delivery
from webhooks.delivery import LeasedDelivery
from webhooks.encryption import encrypt
from webhooks.models import Endpoint
from webhooks.outbox import EventData, publish

SECRET = "whsec_of-the-tests"


def listener(name: str = "listener") -> User:
    """Somebody who may have endpoints."""
    user = User.objects.create_user(name)
    user.user_permissions.add(Permission.objects.get(content_type__app_label="webhooks", codename="change_endpoint"))
    return user


def key_for(user: User, scopes: str = "webhooks") -> dict[str, str]:
    """The header with a new key of the user's."""
    _, text = api_keys.create_key(user, "Test", frozenset(scopes.split()), now=timezone.now())
    return {"X-API-Key": text}


def endpoint(owner: User | None = None, **members: Any) -> Endpoint:
    made = Endpoint.objects.create(
        owner=owner or listener(), created_at=timezone.now(), **{"url": "https://receiver.example/hook", **members}
    )
    made.secrets.create(sealed=encrypt(SECRET), state="active", created_at=timezone.now())
    return made


def event(number: int = 1) -> None:
    """As if a book had been added, but no book was."""
    with transaction.atomic():
        publish([EventData(CREATED, None, {"book": {"id": number}, "previous": {}})], timezone.now())


def claim(most: int = 10) -> list[LeasedDelivery]:
    """By a worker that has nothing under way."""
    return delivery.claim_due(3 * most, {}).deliveries
