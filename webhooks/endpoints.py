"""Endpoints and their secrets, for the people whose they are."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, QuerySet

from oauth.scopes import holds, needing_permission
from webhooks.encryption import new_secret, seal
from webhooks.models import Endpoint, EndpointSecret

PERMISSION = needing_permission()["webhooks"]
# How many a person may have.
MOST = 100
# What an endpoint that is put to work again has left behind.
FRESH = {"reason": "", "dead_in_a_row": 0}
UNREADABLE = "Its secret cannot be read: give it a new one."


class TooManyEndpoints(Exception):
    """The owner has MOST of them."""


class EndpointDisabled(Exception):
    """Nothing can be sent to it until it is active again."""


class NoPendingSecret(Exception):
    """There is none to be promoted."""


def own(owner: User) -> QuerySet[Endpoint]:
    """A person's endpoints; `pending_secret` tells whether one waits to be promoted."""
    pending = EndpointSecret.objects.filter(endpoint=OuterRef("pk"), state=EndpointSecret.State.PENDING)
    return Endpoint.objects.kept().filter(owner=owner).annotate(pending_secret=Exists(pending)).order_by("pk")


def add(owner: User, values: Mapping[str, Any], secret: str | None, now: datetime) -> tuple[Endpoint, str]:
    """A new endpoint and its secret. Needs a transaction. Raises TooManyEndpoints."""
    # Makers at the same time would each count too few.
    User.objects.select_for_update().get(pk=owner.pk)
    if own(owner).count() >= MOST:
        raise TooManyEndpoints
    endpoint = Endpoint.objects.create(owner=owner, created_at=now, **values)
    text = secret or new_secret()
    endpoint.secrets.create(sealed=seal(text), state=EndpointSecret.State.ACTIVE, created_at=now)
    return own(owner).get(pk=endpoint.pk), text


def change(endpoint: Endpoint, values: Mapping[str, Any]) -> None:
    """Writes these values, unless the endpoint is deleted; one set active begins afresh."""
    fresh = FRESH if values.get("state") == Endpoint.State.ACTIVE else {}
    if values:
        Endpoint.objects.kept().filter(pk=endpoint.pk).update(**values, **fresh)


def remove(endpoint: Endpoint) -> None:
    """Sends no more, not even what is waiting."""
    Endpoint.objects.filter(pk=endpoint.pk).update(state=Endpoint.State.DELETED)


def add_secret(endpoint: Endpoint, secret: str | None, now: datetime) -> str:
    """A pending one, in place of another that is pending. Needs a transaction."""
    text = secret or new_secret()
    EndpointSecret.objects.update_or_create(
        endpoint=endpoint,
        state=EndpointSecret.State.PENDING,
        defaults={"sealed": seal(text), "created_at": now},
    )
    return text


def promote(endpoint: Endpoint) -> None:
    """The pending secret signs from now on, and the other is gone; an endpoint that only lacked one is active again.

    Needs a transaction. Raises NoPendingSecret.
    """
    secrets = EndpointSecret.objects.filter(endpoint=endpoint)
    pending = secrets.select_for_update().filter(state=EndpointSecret.State.PENDING).first()
    if not pending:
        raise NoPendingSecret
    secrets.filter(state=EndpointSecret.State.ACTIVE).delete()
    pending.state = EndpointSecret.State.ACTIVE
    pending.save(update_fields=["state"])
    unreadable = Endpoint.objects.filter(pk=endpoint.pk, state=Endpoint.State.DISABLED, reason=UNREADABLE)
    unreadable.update(state=Endpoint.State.ACTIVE, **FRESH)


def disable(endpoints: QuerySet[Endpoint], reason: str) -> list[Endpoint]:
    """Answers those that were active."""
    disabled = list(endpoints.filter(state=Endpoint.State.ACTIVE).select_related("owner"))
    endpoints.filter(state=Endpoint.State.ACTIVE).update(state=Endpoint.State.DISABLED, reason=reason)
    for endpoint in disabled:
        endpoint.state, endpoint.reason = Endpoint.State.DISABLED, reason
    return disabled


def reachable() -> QuerySet[Endpoint]:
    """Those that are listening, and whose owners may still have them."""
    return Endpoint.objects.listening().filter(owner__in=User.objects.filter(holds(PERMISSION)))


def require_active(endpoint: Endpoint) -> None:
    """Raises EndpointDisabled."""
    if endpoint.state != Endpoint.State.ACTIVE:
        raise EndpointDisabled
