"""Events, who listens to them, what became of each delivery, and what others sent."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from webhooks.registry import ALL_KINDS
from webhooks.ssrf import MAX_URL_LENGTH

# How many deliveries an endpoint may want at the same time.
MIN_IN_FLIGHT, MAX_IN_FLIGHT = 1, 1_000
MAX_ANSWER_BYTES = 16 * 1024
# How far back the stream goes, and what can be replayed.
EVENT_RETENTION = timedelta(days=30)


class Transaction(models.Func):
    """The number of the transaction that writes a row; SQLite's writers follow one another anyway."""

    template = "pg_current_xact_id()::text::bigint"
    output_field = models.BigIntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return "0", []


class Event(models.Model):
    """What happened; `body` is what is sent of it, to the byte. Written by `webhooks.outbox` alone."""

    uuid = models.UUIDField(unique=True, default=uuid4, editable=False)
    kind = models.CharField(max_length=50)
    # The id of the book.
    subject = models.BigIntegerField(null=True)
    body = models.BinaryField()
    created_at = models.DateTimeField()
    # By which readers of the stream pass nobody over who commits late.
    transaction = models.BigIntegerField(db_default=Transaction(), editable=False)

    class Meta:
        indexes = [
            models.Index("transaction", "id", name="event_in_the_stream"),
            models.Index("created_at", name="event_by_created_at"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.uuid}"


class SignatureForm(models.TextChoices):
    """How a body is signed (specification, Section 6)."""

    A = "A", "A: the body"
    B = "B", "B: the time and the body"


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    def not_deleted(self) -> "EndpointQuerySet":
        """Those that their owners have not deleted."""
        return self.exclude(state=Endpoint.State.DELETED)

    def active(self) -> "EndpointQuerySet":
        return self.filter(state=Endpoint.State.ACTIVE, owner__is_active=True)

    def subscribed_to(self, kind: str) -> "EndpointQuerySet":
        return self.active().filter(Q(kinds=ALL_KINDS) | Q(kinds__contains=kind))


class Endpoint(models.Model):
    """Where events are sent. One that is deleted keeps its row until its deliveries are cleared: nobody waits for that,
    and an event that is being written meanwhile finds it.
    """

    class State(models.TextChoices):
        ACTIVE = "active"
        DISABLED = "disabled"
        DELETED = "deleted"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="endpoints")
    url = models.CharField("URL", max_length=MAX_URL_LENGTH)
    # Space-separated, or ALL.
    kinds = models.CharField(max_length=200, default=ALL_KINDS)
    form = models.CharField("signature form", max_length=1, choices=SignatureForm, default=SignatureForm.B)
    description = models.CharField(max_length=200, blank=True)
    in_flight_limit = models.PositiveSmallIntegerField(default=50)
    state = models.CharField(max_length=10, choices=State, default=State.ACTIVE, db_default=State.ACTIVE)
    # Why it is disabled, for its owner.
    reason = models.CharField(max_length=200, blank=True)
    dead_in_a_row = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    created_at = models.DateTimeField(editable=False)

    objects = EndpointQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(in_flight_limit__range=(MIN_IN_FLIGHT, MAX_IN_FLIGHT)), name="endpoint_in_flight_limit"
            )
        ]

    def __str__(self) -> str:
        return self.url


class EndpointSecret(models.Model):
    """What signs. A rotation adds a pending one, which the receiver learns to accept, and then promotes it."""

    class State(models.TextChoices):
        PENDING = "pending"
        ACTIVE = "active"

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="secrets")
    sealed = models.TextField(editable=False)
    state = models.CharField(max_length=10, choices=State)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "state"], name="endpoint_secret_of_each_state")]

    def __str__(self) -> str:
        return f"{self.state} secret of {self.endpoint}"


class LeasedModel(models.Model):
    """What one worker at a time has. `next_at` is when it is due and, while a worker has it, when its lease ends."""

    # By the database's clock, which all workers share.
    next_at = models.DateTimeField(null=True, db_default=Now())
    lease = models.UUIDField(null=True)
    attempted = models.PositiveSmallIntegerField(default=0, db_default=0)
    # More than were attempted where workers died.
    claimed = models.PositiveSmallIntegerField(default=0, db_default=0)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True


class Delivery(LeasedModel):
    """One event for one endpoint."""

    class State(models.TextChoices):
        WAITING = "waiting"
        DELIVERED = "delivered"
        DEAD = "dead"

    # The constraint and the indexes below begin with them.
    event = models.ForeignKey(Event, models.CASCADE, related_name="deliveries", db_index=False)
    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="deliveries", db_index=False)
    # 0 is the first; others were asked for by hand.
    replay = models.PositiveIntegerField(default=0, db_default=0)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING, db_default=State.WAITING)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [models.UniqueConstraint(fields=["event", "endpoint", "replay"], name="delivery_once")]
        indexes = [
            models.Index("endpoint", "id", name="delivery_of_endpoint"),
            models.Index("endpoint", "next_at", name="delivery_waiting", condition=Q(next_at__isnull=False)),
            models.Index("endpoint", name="delivery_in_flight", condition=Q(lease__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.endpoint}"


class Attempt(models.Model):
    """One request, and what came of it: a status, or an error in our words."""

    delivery = models.ForeignKey(Delivery, models.CASCADE, related_name="attempts")
    started_at = models.DateTimeField()
    milliseconds = models.PositiveIntegerField()
    status = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=200, blank=True)
    # Of the answer's body, LARGEST_ANSWER bytes at the most.
    answer = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.status or self.error} at {self.started_at}"


class Source(models.Model):
    """Another service, which may send events here."""

    name = models.SlugField(unique=True)
    form = models.CharField("signature form", max_length=1, choices=SignatureForm, default=SignatureForm.B)
    enabled = models.BooleanField(default=True)
    mirrors = models.BooleanField("mirrors its books", default=False)
    created_at = models.DateTimeField(editable=False)

    def __str__(self) -> str:
        return self.name


class SourceSecret(models.Model):
    """What a source signs with; all of them are accepted."""

    source = models.ForeignKey(Source, models.CASCADE, related_name="secrets")
    sealed = models.TextField(editable=False)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"secret of {self.source}"


class Received(LeasedModel):
    """An event that a source sent, worked off as deliveries are. Written by `webhooks.inbox` alone."""

    class State(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        DEAD = "dead"

    source = models.ForeignKey(Source, models.CASCADE, related_name="received")
    event_id = models.CharField(max_length=200)
    kind = models.CharField(max_length=100)
    body = models.BinaryField()
    received_at = models.DateTimeField(db_default=Now())
    state = models.CharField(max_length=10, choices=State, default=State.WAITING, db_default=State.WAITING)
    error = models.TextField(blank=True, db_default="")

    class Meta:
        verbose_name, verbose_name_plural = "received event", "inbox"
        constraints = [models.UniqueConstraint(fields=["source", "event_id"], name="received_once")]
        indexes = [models.Index("next_at", name="received_waiting", condition=Q(next_at__isnull=False))]

    def __str__(self) -> str:
        return f"{self.kind} {self.event_id} from {self.source}"
