"""Events, endpoints, deliveries and their attempts, and the events that other services send."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Concat, Now
from django.utils.translation import gettext_lazy as _

from library_site.jobs.leases import LeasedModel
from oauth.models import APIKey, Authorization
from webhooks.registry import ALL_KINDS
from webhooks.ssrf import MAX_URL_LENGTH

# Bounds of `in_flight_limit`: the deliveries to an endpoint at the same time.
MIN_IN_FLIGHT, MAX_IN_FLIGHT = 1, 1_000
MAX_ANSWER_BYTES = 16 * 1024
# How long events stay in the stream and can be replayed.
EVENT_RETENTION = timedelta(days=30)


class Transaction(models.Func):
    """The id of the transaction that writes a row; 0 on SQLite, where there is one writer at a time."""

    template = "pg_current_xact_id()::text::bigint"
    output_field = models.BigIntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return "0", []


class Event(models.Model):
    """Something that happened; `body` has the exact bytes that are sent. Only `webhooks.outbox` writes events."""

    uuid = models.UUIDField(unique=True, default=uuid4, editable=False)
    kind = models.CharField(_("kind"), max_length=50)
    # The id of the book.
    subject = models.BigIntegerField(null=True)
    body = models.BinaryField()
    created_at = models.DateTimeField(_("created at"))
    # Orders the stream: readers do not miss events of transactions that commit late.
    transaction = models.BigIntegerField(db_default=Transaction(), editable=False)
    # The span of the change (W3C Trace Context, 3.2); null where changes are not traced.
    traceparent = models.CharField(max_length=55, null=True, editable=False)  # noqa: DJ001  # null costs no bytes

    class Meta:
        verbose_name, verbose_name_plural = _("event"), _("events")
        indexes = [
            models.Index("transaction", "id", name="event_in_the_stream"),
            models.Index("created_at", name="event_by_created_at"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.uuid}"


class SignatureForm(models.TextChoices):
    """How a body is signed (specification, Section 6; Standard Webhooks 1.0)."""

    A = "A", _("A: the body")
    B = "B", _("B: the time and the body")
    C = "C", _("C: Standard Webhooks")

    @property
    def key_encoding(self) -> str:
        return "base64" if self == SignatureForm.C else "utf-8"


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    def not_deleted(self) -> "EndpointQuerySet":
        return self.exclude(state=Endpoint.State.DELETED)

    def active(self) -> "EndpointQuerySet":
        is_unexpired = Q(expires_at=None) | Q(expires_at__gt=Now())
        return self.filter(is_unexpired, state=Endpoint.State.ACTIVE, owner__is_active=True)

    def ended(self) -> "EndpointQuerySet":
        """Endpoints whose creating credential has ended."""
        return self.filter(expires_at__lte=Now())

    def subscribed_to(self, kind: str) -> "EndpointQuerySet":
        names = Concat(Value(" "), "kinds", Value(" "))
        return self.active().alias(names=names).filter(Q(kinds=ALL_KINDS) | Q(names__contains=f" {kind} "))


class Endpoint(models.Model):
    """An address where events are sent.

    A deleted endpoint keeps its row until its deliveries are deleted: the deletion is fast, and an event that is
    written at the same time can still refer to it.
    """

    class State(models.TextChoices):
        ACTIVE = "active", _("Active")
        DISABLED = "disabled", _("Disabled")
        DELETED = "deleted", _("Deleted")

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="endpoints", verbose_name=_("owner")
    )
    url = models.CharField(_("URL"), max_length=MAX_URL_LENGTH)
    # Separated by spaces, or ALL_KINDS.
    kinds = models.CharField(_("kinds"), max_length=200, default=ALL_KINDS)
    form = models.CharField(_("signature form"), max_length=1, choices=SignatureForm, default=SignatureForm.B)
    description = models.CharField(_("description"), max_length=200, blank=True)
    in_flight_limit = models.PositiveSmallIntegerField(_("in flight limit"), default=50)
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.ACTIVE, db_default=State.ACTIVE)
    # Why the endpoint is disabled; its owner reads it.
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    dead_in_a_row = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    created_at = models.DateTimeField(_("created at"), editable=False)
    # The API key or the app's access that created the endpoint. The endpoint ends with it. Null if a person created it.
    creator = models.ForeignKey(
        APIKey, models.SET_NULL, null=True, editable=False, related_name="+", db_column="maker_id"
    )
    authorization = models.ForeignKey(Authorization, models.SET_NULL, null=True, editable=False, related_name="+")
    # By the database's clock. Nothing is sent from then on.
    expires_at = models.DateTimeField(_("expires at"), null=True, editable=False)

    objects = EndpointQuerySet.as_manager()

    class Meta:
        verbose_name, verbose_name_plural = _("endpoint"), _("endpoints")
        constraints = [
            models.CheckConstraint(
                condition=Q(in_flight_limit__range=(MIN_IN_FLIGHT, MAX_IN_FLIGHT)), name="endpoint_in_flight_limit"
            )
        ]

    def __str__(self) -> str:
        return self.url

    @property
    def key_encoding(self) -> str:
        return SignatureForm(self.form).key_encoding


class EndpointSecret(models.Model):
    """A secret that signs deliveries. A rotation adds a pending one, and promotes it when the receiver accepts both."""

    class State(models.TextChoices):
        PENDING = "pending", _("Pending")
        ACTIVE = "active", _("Active")

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="secrets")
    sealed = models.TextField(editable=False)
    state = models.CharField(_("state"), max_length=10, choices=State)
    created_at = models.DateTimeField(_("created at"))

    class Meta:
        verbose_name, verbose_name_plural = _("secret"), _("secrets")
        constraints = [models.UniqueConstraint(fields=["endpoint", "state"], name="endpoint_secret_of_each_state")]

    def __str__(self) -> str:
        return f"{self.state} secret of {self.endpoint}"


class Delivery(LeasedModel):
    """One event for one endpoint."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        DELIVERED = "delivered", _("Delivered")
        DEAD = "dead", _("Dead")

    # The constraint and the indexes below begin with these columns.
    event = models.ForeignKey(Event, models.CASCADE, related_name="deliveries", db_index=False, verbose_name=_("event"))
    endpoint = models.ForeignKey(
        Endpoint, models.CASCADE, related_name="deliveries", db_index=False, verbose_name=_("endpoint")
    )
    # 0 is the first delivery; a user requested the others.
    replay = models.PositiveIntegerField(_("replay"), default=0, db_default=0)
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.WAITING, db_default=State.WAITING)
    created_at = models.DateTimeField(_("created at"), db_default=Now())

    class Meta:
        verbose_name, verbose_name_plural = _("delivery"), _("deliveries")
        constraints = [models.UniqueConstraint(fields=["event", "endpoint", "replay"], name="delivery_once")]
        indexes = [
            models.Index("endpoint", "id", name="delivery_of_endpoint"),
            models.Index("endpoint", "next_at", name="delivery_waiting", condition=Q(next_at__isnull=False)),
            models.Index("endpoint", name="delivery_in_flight", condition=Q(lease__isnull=False)),
            # For the list of deliveries, newest first. Nearly all are delivered, so no index helps to find those.
            models.Index("id", name="delivery_is_waiting", condition=Q(state="waiting")),
            models.Index("id", name="delivery_is_dead", condition=Q(state="dead")),
        ]

    def __str__(self) -> str:
        return f"{self.event} → {self.endpoint}"


class Attempt(models.Model):
    """One request and its result: the status of the response, or our description of the error."""

    delivery = models.ForeignKey(Delivery, models.CASCADE, related_name="attempts")
    started_at = models.DateTimeField(_("started at"))
    milliseconds = models.PositiveIntegerField(_("milliseconds"))
    status = models.PositiveSmallIntegerField(_("status"), null=True)
    error = models.CharField(_("error"), max_length=200, blank=True)
    # The first MAX_ANSWER_BYTES bytes of the response's body.
    answer = models.BinaryField()

    class Meta:
        verbose_name, verbose_name_plural = _("attempt"), _("attempts")

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M:%S}: {self.status or self.error}"


class DeliveryCount(models.Model):
    """Numbers of attempts by result. The sums over all rows never decrease, also when deliveries are deleted.

    Workers share a few rows, so that they rarely wait for each other.
    """

    shard = models.PositiveSmallIntegerField(primary_key=True)
    sent = models.BigIntegerField()
    failed = models.BigIntegerField()
    dead = models.BigIntegerField()

    def __str__(self) -> str:
        return f"sent {self.sent}, failed {self.failed}, dead {self.dead}"


class Source(models.Model):
    """Another service that may send events here."""

    name = models.SlugField(_("name"), unique=True)
    form = models.CharField(_("signature form"), max_length=1, choices=SignatureForm, default=SignatureForm.B)
    enabled = models.BooleanField(_("enabled"), default=True)
    created_at = models.DateTimeField(_("created at"), editable=False)

    class Meta:
        verbose_name, verbose_name_plural = _("source"), _("sources")

    def __str__(self) -> str:
        return self.name


class SourceSecret(models.Model):
    """A secret that a source signs with; all of its secrets are accepted."""

    source = models.ForeignKey(Source, models.CASCADE, related_name="secrets")
    sealed = models.TextField(editable=False)
    created_at = models.DateTimeField(_("created at"))

    class Meta:
        verbose_name, verbose_name_plural = _("secret"), _("secrets")

    def __str__(self) -> str:
        return f"{self.source}, {self.created_at:%Y-%m-%d}"


class Received(LeasedModel):
    """An event that a source sent, processed from a queue as deliveries are. Only `webhooks.inbox` writes it."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        DONE = "done", _("Done")
        DEAD = "dead", _("Dead")

    source = models.ForeignKey(Source, models.CASCADE, related_name="received", verbose_name=_("source"))
    event_id = models.CharField(_("event id"), max_length=200)
    kind = models.CharField(_("kind"), max_length=100)
    body = models.BinaryField()
    received_at = models.DateTimeField(_("received at"), db_default=Now())
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.WAITING, db_default=State.WAITING)
    error = models.TextField(_("error"), blank=True, db_default="")

    class Meta:
        verbose_name, verbose_name_plural = _("received event"), _("inbox")
        constraints = [models.UniqueConstraint(fields=["source", "event_id"], name="received_once")]
        indexes = [
            models.Index("next_at", name="received_waiting", condition=Q(next_at__isnull=False)),
            # For the list of received events, newest first.
            models.Index("id", name="received_is_waiting", condition=Q(state="waiting")),
            models.Index("id", name="received_is_dead", condition=Q(state="dead")),
        ]

    def __str__(self) -> str:
        return f"{self.source}: {self.kind} {self.event_id}"


class Clearing(models.Model):
    """A single row: when expired rows are deleted next, or when the lease of the worker that deletes them ends.

    Only `webhooks.expiry` writes it.
    """

    # By the database's clock, which all workers share.
    next_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"clearing at {self.next_at}"


class Restoration(models.Model):
    """A backup was restored. Only `webhooks.stream` writes it."""

    restored_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"restored at {self.restored_at}"
