"""Endpoints and their secrets, for the people whose they are."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from smtplib import SMTPException
from typing import Any

from django.contrib.auth.models import User
from django.core.mail import send_mail
from django.db import connection
from django.db.models import Exists, Max, OuterRef, QuerySet

from library_site.http.refusals import Refusal
from oauth.scopes import has_permission, scope_permissions
from webhooks.encryption import encrypt, generate_secret
from webhooks.models import EVENT_RETENTION, Delivery, Endpoint, EndpointSecret, Event
from webhooks.outbox import notify_workers
from webhooks.registry import ALL_KINDS, EVENT_KINDS

ENDPOINT_PERMISSION = scope_permissions()["webhooks"]
# How many a person may have.
MAX_ENDPOINTS_PER_USER = 100
# What an endpoint that is put to work again has left behind.
RESET_VALUES = {"reason": "", "dead_in_a_row": 0}
UNREADABLE_SECRET = "Its secret cannot be read: give it a new one."  # noqa: S105  # no secret
log = logging.getLogger(__name__)
MAIL_SUBJECT = "Your webhook is disabled"
MAIL_BODY = """Nothing more is sent to
{url}
{reason}

When it can be reached again, enable it and have the events sent that it missed:
they are kept for {days} days.
"""
# Of one replay: on SQLite nobody else writes meanwhile.
MAX_REPLAYED_EVENTS = 50_000
EMPTY_SPAN_MESSAGE = "It ends before it begins."


class TooManyEndpoints(Refusal):
    """The owner has MAX_ENDPOINTS_PER_USER endpoints."""

    status = 409
    message = f"You have {MAX_ENDPOINTS_PER_USER} webhooks: delete one first"


class EndpointDisabled(Refusal):
    """Nothing can be sent to it until it is active again."""

    status = 409
    message = "The webhook is disabled: set its state to active first"


class NoPendingSecret(Refusal):
    """There is none to be promoted."""

    status = 409
    message = "There is no pending secret: add one first"


def own_endpoints(owner: User) -> QuerySet[Endpoint]:
    """A person's endpoints; `pending_secret` tells whether one waits to be promoted."""
    pending = EndpointSecret.objects.filter(endpoint=OuterRef("pk"), state=EndpointSecret.State.PENDING)
    return Endpoint.objects.not_deleted().filter(owner=owner).annotate(pending_secret=Exists(pending)).order_by("pk")


def create_endpoint(owner: User, values: Mapping[str, Any], secret: str | None, now: datetime) -> tuple[Endpoint, str]:
    """A new endpoint and its secret. Needs a transaction. Raises TooManyEndpoints."""
    # Makers at the same time would each count too few.
    User.objects.select_for_update().get(pk=owner.pk)
    if own_endpoints(owner).count() >= MAX_ENDPOINTS_PER_USER:
        raise TooManyEndpoints
    endpoint = Endpoint.objects.create(owner=owner, created_at=now, **values)
    text = secret or generate_secret()
    endpoint.secrets.create(sealed=encrypt(text), state=EndpointSecret.State.ACTIVE, created_at=now)
    return own_endpoints(owner).get(pk=endpoint.pk), text


def change_endpoint(endpoint: Endpoint, values: Mapping[str, Any]) -> None:
    """Writes these values, unless the endpoint is deleted; one set active begins afresh."""
    fresh = RESET_VALUES if values.get("state") == Endpoint.State.ACTIVE else {}
    if values:
        Endpoint.objects.not_deleted().filter(pk=endpoint.pk).update(**values, **fresh)


def delete_endpoint(endpoint: Endpoint) -> None:
    """Sends no more, not even what is waiting."""
    Endpoint.objects.filter(pk=endpoint.pk).update(state=Endpoint.State.DELETED)


def add_secret(endpoint: Endpoint, secret: str | None, now: datetime) -> str:
    """A pending one, in place of another that is pending. Needs a transaction."""
    text = secret or generate_secret()
    EndpointSecret.objects.update_or_create(
        endpoint=endpoint,
        state=EndpointSecret.State.PENDING,
        defaults={"sealed": encrypt(text), "created_at": now},
    )
    return text


def promote_secret(endpoint: Endpoint) -> None:
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
    unreadable = Endpoint.objects.filter(pk=endpoint.pk, state=Endpoint.State.DISABLED, reason=UNREADABLE_SECRET)
    unreadable.update(state=Endpoint.State.ACTIVE, **RESET_VALUES)


def disable_endpoints(endpoints: QuerySet[Endpoint], reason: str) -> list[Endpoint]:
    """Answers those that were active."""
    disabled = list(endpoints.filter(state=Endpoint.State.ACTIVE).select_related("owner"))
    endpoints.filter(state=Endpoint.State.ACTIVE).update(state=Endpoint.State.DISABLED, reason=reason)
    for endpoint in disabled:
        endpoint.state, endpoint.reason = Endpoint.State.DISABLED, reason
    return disabled


def reachable_endpoints() -> QuerySet[Endpoint]:
    """Those that are listening, and whose owners may still have them."""
    return Endpoint.objects.active().filter(owner__in=User.objects.filter(has_permission(ENDPOINT_PERMISSION)))


def require_active(endpoint: Endpoint) -> None:
    """Raises EndpointDisabled."""
    if endpoint.state != Endpoint.State.ACTIVE:
        raise EndpointDisabled


def mail_owner(endpoint: Endpoint) -> None:
    """Mail that fails is only logged, since the admin shows the reason too."""
    log.warning("Endpoint %s is disabled. %s", endpoint.pk, endpoint.reason)
    if endpoint.owner and endpoint.owner.email:
        words = MAIL_BODY.format(url=endpoint.url, reason=endpoint.reason, days=EVENT_RETENTION.days)
        try:
            send_mail(MAIL_SUBJECT, words, None, [endpoint.owner.email])
        except (SMTPException, OSError, ValueError) as error:
            log.error("The owner of endpoint %s could not be told: %s", endpoint.pk, type(error).__name__)  # noqa: TRY400


class TooManyEvents(Refusal):
    """A replay of more than MAX_REPLAYED_EVENTS events."""

    status = 422
    message = f"More than {MAX_REPLAYED_EVENTS:,} events are meant: ask for a shorter time"


def redeliver(delivery: Delivery) -> Delivery:
    """The same event for the same endpoint once more. Needs a transaction."""
    lock_endpoint(delivery.endpoint_id)
    same = Delivery.objects.filter(event=delivery.event_id, endpoint=delivery.endpoint_id)
    number = same.aggregate(last=Max("replay"))["last"] + 1
    notify_workers()
    return Delivery.objects.create(event_id=delivery.event_id, endpoint_id=delivery.endpoint_id, replay=number)


def replay_events(endpoint: Endpoint, kinds: str, after: datetime, before: datetime | None, now: datetime) -> int:
    """All events of a span of time, `before` itself left out, as far back as they are kept; tells how many.

    `kinds` are as in Endpoint; ALL means those that the endpoint takes. Needs a transaction.
    Raises TooManyEvents.
    """
    lock_endpoint(endpoint.pk)
    events = Event.objects.filter(
        kind__in=kinds_to_replay(kinds, endpoint), created_at__gte=max(after, now - EVENT_RETENTION)
    )
    if before:
        events = events.filter(created_at__lt=before)
    if events[MAX_REPLAYED_EVENTS:].exists():
        raise TooManyEvents
    selected, parameters = events.values("id").query.sql_with_params()
    notify_workers()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO webhooks_delivery (event_id, endpoint_id, replay)"  # noqa: S608  # by Django
            " SELECT event.id, %s, (SELECT COALESCE(MAX(replay) + 1, 0) FROM webhooks_delivery"
            " WHERE event_id = event.id AND endpoint_id = %s)"
            f" FROM ({selected}) AS event ORDER BY event.id",
            [endpoint.pk, endpoint.pk, *parameters],
        )
        return int(cursor.rowcount)


def kinds_to_replay(kinds: str, endpoint: Endpoint) -> Sequence[str]:
    wanted = endpoint.kinds if kinds == ALL_KINDS else kinds
    return list(EVENT_KINDS) if wanted == ALL_KINDS else wanted.split()


def lock_endpoint(endpoint_id: int) -> None:
    """Two replays at once would give their deliveries the same number. Deliveries of new events need not wait."""
    Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint_id)
