"""Creates users, endpoints and events for tests of webhooks."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from books.writing.events import BOOK_CREATED
from oauth.models import APIKey
from oauth.scopes import SCOPES
from tests.support.oauth_flows import create_user
from webhooks.delivery import leases
from webhooks.delivery.leases import LeasedDelivery
from webhooks.encryption import encrypt_secret
from webhooks.endpoints import add_endpoint_secret, promote_secret
from webhooks.models import Delivery, Endpoint
from webhooks.outbox import EventData, create_ping, publish

# One of the releases before form C, which cannot use it.
OLD_SECRET = "whsec_-of-an-old-endpoint_"
# Good in each form.
SECRET = "whsec_dGhlIGtleSBvZiB0aGUgdGVzdHMnIGVuZHBvaW50"


def create_owner(name: str = "listener") -> User:
    """Creates a user who may have endpoints and keys."""
    return create_user(name, [*SCOPES["webhooks"].permissions, "oauth.add_apikey"])


def create_endpoint(owner: User | None = None, **fields: Any) -> Endpoint:
    endpoint = Endpoint.objects.create(
        owner=owner or create_owner(), created_at=timezone.now(), **{"url": "https://receiver.example/hook", **fields}
    )
    endpoint.secrets.create(sealed=encrypt_secret(SECRET), state="active", created_at=timezone.now())
    return endpoint


def create_made_endpoint(owner: User, **fields: Any) -> Endpoint:
    """Creates an endpoint as the owner's only API key does."""
    return create_endpoint(owner, creator=APIKey.objects.get(owner=owner), **fields)


def publish_event(number: int = 1) -> None:
    """Publishes `book.created` without a book."""
    with transaction.atomic():
        publish([EventData(BOOK_CREATED, None, {"book": {"id": number}, "previous": {}})], timezone.now())


def claim_deliveries(limit: int = 10) -> list[LeasedDelivery]:
    """Claims due deliveries as a worker that is sending nothing yet."""
    return leases.claim_deliveries(3 * limit, {}).deliveries


def deliver_ping(endpoint: Endpoint) -> Delivery:
    """Delivers a ping to the endpoint, as the worker does."""
    with transaction.atomic():
        delivery = create_ping(endpoint, timezone.now())
    call_command("deliver_webhooks", once=True)
    delivery.refresh_from_db()
    return delivery


@transaction.atomic
def add_new_secret(endpoint: Endpoint, *, is_promoted: bool = False) -> str:
    secret = add_endpoint_secret(endpoint, None, timezone.now())
    if is_promoted:
        promote_secret(endpoint)
    return secret
