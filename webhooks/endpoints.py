"""Endpoints of users: their secrets, their state, mail to their owners, and the replay of their events."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from smtplib import SMTPException
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext, gettext_noop, override

from library_site.admin.stored_texts import translate_stored
from library_site.db.sql import execute
from library_site.http.api_errors import INVALID_MESSAGE, APIError, ErrorContent, FieldError
from oauth.accounts.languages import find_language
from oauth.issuers import PERSON, Issuer
from oauth.scopes import build_permission_condition
from webhooks.encryption import BASE64_SECRET_RULE, can_sign, encrypt_secret, generate_secret
from webhooks.models import EVENT_RETENTION, Delivery, Endpoint, EndpointSecret, Event, SignatureForm
from webhooks.outbox import create_ping
from webhooks.permissions import OWNER_PERMISSIONS
from webhooks.registry import ALL_KINDS, EVENT_KINDS
from webhooks.signing import is_usable_secret

log = logging.getLogger(__name__)

MAX_ENDPOINTS_PER_USER = 100
# Set when an endpoint becomes active again.
RESET_VALUES = {"reason": "", "dead_in_a_row": 0}
ENDED_REASON = gettext_noop("The app's access or the API key that made it has ended. If you enable it, it is yours.")
UNREADABLE_SECRET = gettext_noop("Its secret cannot be read: give it a new one.")
# The most events of one replay: on SQLite, all other writers wait until it ends.
MAX_REPLAYED_EVENTS = 50_000
EMPTY_SPAN_MESSAGE = gettext_noop("It ends before it begins.")


class EndpointNotFound(APIError):
    """You have no such webhook."""

    status_code = 404
    default_detail = "Webhook not found"


class TooManyEndpoints(APIError):
    """The owner has MAX_ENDPOINTS_PER_USER endpoints."""

    status_code = 409
    default_detail = f"You have {MAX_ENDPOINTS_PER_USER} webhooks: delete one first"


class EndpointDisabled(APIError):
    """Nothing can be sent to the endpoint before it is active again."""

    status_code = 409
    default_detail = gettext_noop("The webhook is disabled: set its state to active first")


class UnusableSecret(APIError):
    """The secret that the owner brings has no key for the endpoint's form."""

    status_code = 422
    default_detail = INVALID_MESSAGE

    def get_content(self, request: object) -> ErrorContent:
        message = f"In form C, input should be {BASE64_SECRET_RULE}."
        return ErrorContent(self.status_code, self.default_detail, [FieldError("body", "secret", message, "invalid")])


class NewSecretNeeded(APIError):
    """Form C cannot sign with a secret of the endpoint, which is older than the form or the owner's own."""

    status_code = 409
    default_detail = "Form C cannot sign with the secret of this webhook: add a new secret and promote it first"


class NoPendingSecret(APIError):
    """The endpoint has no secret to promote."""

    status_code = 409
    default_detail = "There is no pending secret: add one first"


class TooManyWaiting(APIError):
    """More than WEBHOOKS_MAX_WAITING deliveries of the owner would wait."""

    status_code = 409
    default_detail = gettext_noop("Too many deliveries are waiting: wait until some are sent, or ask for fewer")


class TooManyEvents(APIError):
    """A replay of more than MAX_REPLAYED_EVENTS events."""

    status_code = 422
    default_detail = f"More than {MAX_REPLAYED_EVENTS:,} events are meant: ask for a shorter time"


def list_own_endpoints(owner: User, *conditions: Q) -> QuerySet[Endpoint]:
    """Returns a user's endpoints that match. `pending_secret` tells whether a secret can be promoted."""
    pending_secrets = EndpointSecret.objects.filter(endpoint=OuterRef("pk"), state=EndpointSecret.State.PENDING)
    endpoints = Endpoint.objects.not_deleted().filter(*conditions, owner=owner).order_by("pk")
    return endpoints.annotate(pending_secret=Exists(pending_secrets))


def list_reachable_endpoints() -> QuerySet[Endpoint]:
    """Active endpoints whose owners still have a permission for them."""
    owners = User.objects.filter(build_permission_condition(OWNER_PERMISSIONS))
    return Endpoint.objects.active().filter(owner__in=owners)


def create_endpoint(
    owner: User, values: Mapping[str, Any], secret: str | None, now: datetime, creator: Issuer = PERSON
) -> tuple[Endpoint, str]:
    """Returns a new endpoint and its secret. Needs a transaction. Raises UnusableSecret, TooManyEndpoints."""
    new_secret = choose_secret(values.get("form", SignatureForm.B), secret)
    # Without the lock, concurrent requests would not count each other's endpoints.
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    if list_own_endpoints(owner).count() >= MAX_ENDPOINTS_PER_USER:
        raise TooManyEndpoints
    endpoint = Endpoint.objects.create(owner=owner, created_at=now, **creator._asdict(), **values)
    endpoint.secrets.create(sealed=encrypt_secret(new_secret), state=EndpointSecret.State.ACTIVE, created_at=now)
    return list_own_endpoints(owner).get(pk=endpoint.pk), new_secret


def choose_secret(form: str, secret: str | None) -> str:
    """Returns the owner's own secret, or a new one. Raises UnusableSecret."""
    if secret and not is_usable_secret(form, secret):
        raise UnusableSecret
    return secret or generate_secret()


def change_endpoint(endpoint: Endpoint, values: Mapping[str, Any], creator: Issuer = PERSON) -> None:
    """Writes these values, unless the endpoint is deleted. One that becomes active gets RESET_VALUES too.

    `creator` becomes the creator of an endpoint that gets another owner, or that had ended and becomes active.
    Needs a transaction. Raises NewSecretNeeded.
    """
    if values.get("form") == SignatureForm.C:
        lock_for_standard_form(endpoint)
    rows = Endpoint.objects.not_deleted().filter(pk=endpoint.pk)
    is_enabled = values.get("state") == Endpoint.State.ACTIVE
    if is_enabled or "owner" in values:
        (rows if "owner" in values else rows.ended()).update(**creator._asdict())
    if values:
        rows.update(**values, **(RESET_VALUES if is_enabled else {}))


def lock_for_standard_form(endpoint: Endpoint) -> None:
    """Locks the endpoint, so that nobody adds a secret before it has form C. Needs a transaction.

    Raises NewSecretNeeded.
    """
    is_in_form = lock_endpoint(endpoint).form == SignatureForm.C
    secrets = EndpointSecret.objects.filter(endpoint=endpoint).values_list("sealed", flat=True)
    if not is_in_form and not all(can_sign(SignatureForm.C, secret) for secret in secrets):
        raise NewSecretNeeded


def lock_endpoint(endpoint: Endpoint) -> Endpoint:
    return Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)


def delete_endpoint(endpoint: Endpoint) -> None:
    """Marks the endpoint as deleted. Waiting deliveries are not sent either."""
    Endpoint.objects.filter(pk=endpoint.pk).update(state=Endpoint.State.DELETED)


def disable_endpoints(endpoints: QuerySet[Endpoint], reason: str) -> list[Endpoint]:
    """Disables the active ones among these endpoints, and returns them."""
    disabled_endpoints = list(endpoints.filter(state=Endpoint.State.ACTIVE).select_related("owner"))
    endpoints.filter(state=Endpoint.State.ACTIVE).update(state=Endpoint.State.DISABLED, reason=reason)
    for endpoint in disabled_endpoints:
        endpoint.state, endpoint.reason = Endpoint.State.DISABLED, reason
    return disabled_endpoints


def disable_issued(issued: Q) -> None:
    """Disables the endpoints that a credential issued; one of ACCESS_END_HANDLERS. Needs a transaction."""
    ended = Endpoint.objects.ended().filter(state=Endpoint.State.DISABLED)
    endpoints = Endpoint.objects.not_deleted().filter(issued).exclude(pk__in=ended)
    # Locked in the order of ids, as everywhere: otherwise two requests could deadlock.
    pks = list(endpoints.order_by("pk").select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True))
    if pks:
        Endpoint.objects.filter(pk__in=pks).update(state=Endpoint.State.DISABLED, reason=ENDED_REASON, expires_at=Now())


@transaction.atomic
def disable_expired() -> None:
    """Disables active endpoints whose creator has expired."""
    disable_issued(Q(expires_at__lte=Now(), state=Endpoint.State.ACTIVE))


def mail_owner(endpoint: Endpoint) -> None:
    """Tells the owner that the endpoint is disabled. Failures are only logged: the admin shows the reason too."""
    log.warning("Endpoint %s is disabled. %s", endpoint.pk, endpoint.reason)
    if endpoint.owner and endpoint.owner.email:
        try:
            send_mail(*write_disabled_mail(endpoint, endpoint.owner), None, [endpoint.owner.email])
        except (SMTPException, OSError, ValueError) as error:
            log.error("The owner of endpoint %s could not be mailed: %s", endpoint.pk, type(error).__name__)  # noqa: TRY400


def write_disabled_mail(endpoint: Endpoint, owner: User) -> tuple[str, str]:
    values = {"url": endpoint.url, "days": EVENT_RETENTION.days}
    with override(find_language(owner)):
        lines = [
            gettext("Nothing more is sent to\n%(url)s") % values,
            f"{translate_stored(endpoint.reason)}\n",
            gettext("When it can be reached again, enable it and have the events sent that it missed:"),
            gettext("they are kept for %(days)d days.") % values,
        ]
        return gettext("Your webhook is disabled"), "\n".join([*lines, ""])


def add_endpoint_secret(endpoint: Endpoint, secret: str | None, now: datetime) -> str:
    """Adds a pending secret, which replaces another pending one. Returns it.

    Needs a transaction. Raises UnusableSecret.
    """
    new_secret = choose_secret(lock_endpoint(endpoint).form, secret)
    EndpointSecret.objects.update_or_create(
        endpoint=endpoint,
        state=EndpointSecret.State.PENDING,
        defaults={"sealed": encrypt_secret(new_secret), "created_at": now},
    )
    return new_secret


def promote_secret(endpoint: Endpoint) -> None:
    """Replaces the active secret by the pending one. An endpoint that was disabled for its secret is active again.

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


def ping(endpoints: Sequence[Endpoint], now: datetime) -> list[Delivery]:
    """Creates a test event for each endpoint. Needs a transaction. Raises EndpointDisabled, TooManyWaiting."""
    lock_for_deliveries(Counter(endpoint.pk for endpoint in endpoints))
    return [create_ping(endpoint, now) for endpoint in endpoints]


def redeliver(deliveries: Sequence[Delivery]) -> list[Delivery]:
    """Creates a new delivery of the same event to the same endpoint for each delivery.

    Needs a transaction. Raises EndpointDisabled, TooManyWaiting.
    """
    lock_for_deliveries(Counter(delivery.endpoint_id for delivery in deliveries))
    return [create_redelivery(delivery) for delivery in deliveries]


def create_redelivery(delivery: Delivery) -> Delivery:
    deliveries = Delivery.objects.filter(event=delivery.event_id, endpoint=delivery.endpoint_id)
    number = deliveries.aggregate(last=Max("replay"))["last"] + 1
    return Delivery.objects.create(event_id=delivery.event_id, endpoint_id=delivery.endpoint_id, replay=number)


def replay_events(endpoint: Endpoint, kinds: str, after: datetime, before: datetime | None, now: datetime) -> int:
    """Creates deliveries of all stored events from `after` to before `before`. Returns their number.

    `kinds` has the form of Endpoint.kinds; ALL_KINDS means those of the endpoint. Needs a transaction.
    Raises EndpointDisabled, TooManyEvents, TooManyWaiting.
    """
    events, total = lock_for_replay(endpoint, kinds, after, before, now)
    if not total:
        return 0
    # The limit leaves out events that were written after the count: they are delivered anyway.
    event_ids_sql, parameters = events.order_by("pk").values("id")[:total].query.sql_with_params()
    return execute(
        "INSERT INTO webhooks_delivery (event_id, endpoint_id, replay)"  # noqa: S608  # by Django
        " SELECT event.id, %s, (SELECT COALESCE(MAX(replay) + 1, 0) FROM webhooks_delivery"
        " WHERE event_id = event.id AND endpoint_id = %s)"
        f" FROM ({event_ids_sql}) AS event ORDER BY event.id",
        [endpoint.pk, endpoint.pk, *parameters],
    )


def lock_for_replay(
    endpoint: Endpoint, kinds: str, after: datetime, before: datetime | None, now: datetime
) -> tuple[QuerySet[Event], int]:
    """Locks the endpoint. Returns the events of a replay and their number. Raises the errors of `replay_events`."""
    events = Event.objects.filter(
        kind__in=list_replayed_kinds(kinds, endpoint), created_at__gte=max(after, now - EVENT_RETENTION)
    )
    if before:
        events = events.filter(created_at__lt=before)
    count = events[: MAX_REPLAYED_EVENTS + 1].count()
    if count > MAX_REPLAYED_EVENTS:
        raise TooManyEvents
    lock_for_deliveries({endpoint.pk: count})
    return events, count


def list_replayed_kinds(kinds: str, endpoint: Endpoint) -> Sequence[str]:
    names = endpoint.kinds if kinds == ALL_KINDS else kinds
    return list(EVENT_KINDS) if names == ALL_KINDS else names.split()


def lock_for_deliveries(requested: Mapping[int, int]) -> None:
    """Locks endpoints, given by id with the number of new deliveries. Raises EndpointDisabled, TooManyWaiting.

    The lock keeps two replays from using the same number, and one owner's replays from exceeding the maximum together.
    Deliveries of new events need no lock and are never rejected.
    """
    # Always lock endpoints by id, then owners by id: otherwise two requests could deadlock.
    endpoints = list(Endpoint.objects.filter(pk__in=requested).order_by("pk").select_for_update(no_key=True))
    if any(endpoint.state != Endpoint.State.ACTIVE for endpoint in endpoints):
        raise EndpointDisabled
    owner_ids = {endpoint.owner_id for endpoint in endpoints if endpoint.owner_id is not None}
    list(User.objects.filter(pk__in=owner_ids).order_by("pk").select_for_update(no_key=True).values_list("pk"))
    for owner_id in owner_ids:
        requested_count = sum(requested[endpoint.pk] for endpoint in endpoints if endpoint.owner_id == owner_id)
        if count_waiting(owner_id) + requested_count > settings.WEBHOOKS_MAX_WAITING:
            raise TooManyWaiting


def count_waiting(owner_id: int | None) -> int:
    """Counts an owner's deliveries that wait, WEBHOOKS_MAX_WAITING at most.

    Disabled and deleted endpoints count: otherwise an owner could fill the table with replays and delete the endpoints.
    """
    endpoints = Endpoint.objects.filter(owner=owner_id)
    waiting = Delivery.objects.filter(next_at__isnull=False, endpoint__in=endpoints)
    return waiting[: settings.WEBHOOKS_MAX_WAITING].count()
