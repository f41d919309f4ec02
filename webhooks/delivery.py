"""What is due is claimed, sent by nobody else while its lease lasts, and recorded. All times are the database's."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models import Count, Exists, F, Min, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Coalesce, Now

from webhooks.models import Attempt, Delivery, Endpoint, EndpointSecret
from webhooks.schedule import DELAYS, delay
from webhooks.vault import SealBroken, unseal

# At least twice as long as a request may take.
LEASE = timedelta(seconds=30)
# So many workers may die of a delivery.
POISON = 10
# So many in a row, and an endpoint is sent nothing more.
DEAD_IN_A_ROW = 10
LONGEST_DELAY = timedelta(seconds=DELAYS[-1])
DISABLED = f"{DEAD_IN_A_ROW} deliveries in a row failed for good."
UNREADABLE = "Its secret cannot be read: give it a new one."
COUNTED = 10_000
# The locks that a claim holds.
MOST_ENDPOINTS = 200
COLUMNS = ("endpoint_id", "pk", "attempted", "event__kind", "event__body")
# As Django's Now().
NOW = {"postgresql": "STATEMENT_TIMESTAMP()", "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')"}
DUE = (
    "SELECT id FROM (SELECT id FROM webhooks_delivery"
    " WHERE endpoint_id = %s AND next_at <= {now} ORDER BY next_at LIMIT %s) AS due"
)
UNIX_TIME = {
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400",
}

opened = lru_cache(maxsize=10_000)(unseal)


class Claimed(NamedTuple):
    """A delivery that is ours for LEASE, with all that sending it takes."""

    pk: int
    lease: UUID
    attempted: int
    endpoint_id: int
    url: str
    form: str
    secret: str
    kind: str
    body: bytes


class Outcome(NamedTuple):
    """What came of an attempt. `retry_after` is what the receiver asked for, in seconds; `refused` is for good."""

    claimed: Claimed
    started_at: datetime
    milliseconds: int
    status: int | None = None
    error: str = ""
    answer: bytes = b""
    retry_after: float | None = None
    refused: bool = False

    @property
    def delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class Backlog(NamedTuple):
    """What waits (COUNTED at the most), and since when the oldest of it does."""

    waiting: int
    oldest: datetime | None


def claim(most: int) -> list[Claimed]:
    """Some of what is due, the endpoints sharing alike, none beyond its own limit."""
    # On SQLite a transaction would hold up writers.
    if not Delivery.objects.filter(next_at__lte=Now()).exists():
        return []
    with transaction.atomic():
        endpoints = {endpoint.pk: endpoint for endpoint in with_work() if readable(endpoint)}
        found = Delivery.objects.filter(pk__in=shared(endpoints.values(), in_flight(endpoints), most))
        lease = uuid4()
        found.filter(next_at__lte=Now()).update(next_at=Now() + LEASE, lease=lease, claimed=F("claimed") + 1)
        found.filter(lease=lease, claimed__gt=F("attempted") + POISON).update(**ended(Delivery.State.DEAD))
        rows = list(found.filter(lease=lease).order_by("pk").values_list(*COLUMNS))
    return [claimed_by(lease, endpoints[endpoint_id], *columns) for endpoint_id, *columns in rows]


def with_work() -> QuerySet[Any]:
    """Those to whom something is due, held: no other worker sends them anything else meanwhile."""
    due = Delivery.objects.filter(next_at__lte=Now(), endpoint=OuterRef("pk"))
    active = EndpointSecret.objects.filter(endpoint=OuterRef("pk"), state=EndpointSecret.State.ACTIVE)
    sealed = Coalesce(Subquery(active.values("sealed")), Value("", TextField()))
    return (
        Endpoint.objects.listening()
        .annotate(sealed=sealed)
        .filter(Exists(due))
        .select_for_update(skip_locked=True, no_key=True, of=("self",))
        .order_by("?")[:MOST_ENDPOINTS]
    )


def in_flight(endpoints: Collection[int]) -> dict[int, int]:
    """How many deliveries each has under way; counted when it is held."""
    flying = Delivery.objects.filter(endpoint__in=endpoints, lease__isnull=False, next_at__gt=Now())
    return dict(flying.values_list("endpoint").annotate(count=Count("pk")))


def readable(endpoint: Any) -> bool:
    """Whether its secret can be read; else it is disabled."""
    try:
        opened(endpoint.sealed)
    except SealBroken:
        Endpoint.objects.filter(pk=endpoint.pk).update(state=Endpoint.State.DISABLED, reason=UNREADABLE)
        return False
    return True


def shared(endpoints: Collection[Endpoint], flying: Mapping[int, int], most: int) -> list[int]:
    """The ids of what is due longest to each, in one statement: an equal share, if its limit allows."""
    if not endpoints:
        return []
    part = DUE.format(now=NOW[connection.vendor])
    parameters: list[int] = []
    for place, endpoint in enumerate(endpoints):
        share = -(-most // (len(endpoints) - place))
        taken = max(0, min(share, endpoint.in_flight_limit - flying.get(endpoint.pk, 0)))
        most -= taken
        parameters += [endpoint.pk, taken]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join([part] * len(endpoints)), parameters)
        return [pk for (pk,) in cursor.fetchall()]


def claimed_by(lease: UUID, endpoint: Any, pk: int, attempted: int, kind: str, body: bytes) -> Claimed:
    secret = opened(endpoint.sealed)
    return Claimed(pk, lease, attempted, endpoint.pk, endpoint.url, endpoint.form, secret, kind, bytes(body))


def ended(state: Delivery.State) -> dict[str, object]:
    return {"state": state, "next_at": None, "lease": None, "finished_at": Now()}


def record(outcomes: Sequence[Outcome], chances: Iterable[float]) -> list[Endpoint]:
    """Keeps what came of these attempts, but of those whose lease is another worker's by now.

    Answers the endpoints that were disabled for it. `chances` from 0 to 1 spread what is tried again.
    """
    with transaction.atomic():
        # Endpoints before deliveries, as a claim takes them.
        disabled = charged(still_held(outcomes, Delivery.objects.all()))
        ours = still_held(outcomes, Delivery.objects.select_for_update())
        Attempt.objects.bulk_create(attempt(outcome) for outcome in ours)
        delivered = [outcome.claimed.pk for outcome in ours if outcome.delivered]
        over = [outcome.claimed.pk for outcome in ours if is_dead(outcome)]
        finish(delivered, Delivery.State.DELIVERED)
        finish(over, Delivery.State.DEAD)
        for outcome, chance in zip(ours, chances, strict=False):
            if not outcome.delivered and not is_dead(outcome):
                Delivery.objects.filter(pk=outcome.claimed.pk).update(
                    next_at=Now() + pause(outcome, chance), lease=None, attempted=F("attempted") + 1
                )
    return disabled


def still_held(outcomes: Sequence[Outcome], deliveries: QuerySet[Delivery]) -> list[Outcome]:
    """Fences off late ones: their delivery is another worker's."""
    found = deliveries.filter(pk__in=[outcome.claimed.pk for outcome in outcomes], lease__isnull=False)
    held = dict(found.values_list("pk", "lease"))
    return [outcome for outcome in outcomes if held.get(outcome.claimed.pk) == outcome.claimed.lease]


def finish(pks: Collection[int], state: Delivery.State) -> None:
    Delivery.objects.filter(pk__in=pks).update(**ended(state), attempted=F("attempted") + 1)


def attempt(outcome: Outcome) -> Attempt:
    return Attempt(
        delivery_id=outcome.claimed.pk,
        started_at=outcome.started_at,
        milliseconds=outcome.milliseconds,
        status=outcome.status,
        error=outcome.error,
        answer=outcome.answer,
    )


def is_dead(outcome: Outcome) -> bool:
    """Refused, or failed for the last time."""
    last = delay(outcome.claimed.attempted + 1, chance=0) is None
    return not outcome.delivered and (outcome.refused or last)


def pause(outcome: Outcome, chance: float) -> timedelta:
    """Until the next attempt: the schedule's, or longer where the receiver asks for it."""
    planned = delay(outcome.claimed.attempted + 1, chance) or LONGEST_DELAY
    asked = timedelta(seconds=min(outcome.retry_after or 0, LONGEST_DELAY.total_seconds()))
    return max(planned, asked)


def charged(outcomes: Sequence[Outcome]) -> list[Endpoint]:
    """Counts the deliveries in a row that each endpoint let die; answers those that are disabled for it."""
    well = {outcome.claimed.endpoint_id for outcome in outcomes if outcome.delivered}
    ill = Counter(outcome.claimed.endpoint_id for outcome in outcomes if is_dead(outcome))
    Endpoint.objects.filter(pk__in=well, dead_in_a_row__gt=0).update(dead_in_a_row=0)
    for pk in sorted(ill.keys() - well):
        Endpoint.objects.filter(pk=pk).update(dead_in_a_row=F("dead_in_a_row") + ill[pk])
    beyond = Endpoint.objects.filter(pk__in=ill, dead_in_a_row__gte=DEAD_IN_A_ROW, state=Endpoint.State.ACTIVE)
    disabled = list(beyond.select_related("owner"))
    beyond.update(state=Endpoint.State.DISABLED, reason=DISABLED)
    for endpoint in disabled:
        endpoint.state, endpoint.reason = Endpoint.State.DISABLED, DISABLED
    return disabled


def backlog() -> Backlog:
    waiting = Delivery.objects.filter(next_at__isnull=False)[:COUNTED]
    return Backlog(**waiting.aggregate(waiting=Count("pk"), oldest=Min("created_at")))


def result(outcome: Outcome) -> str:
    """In a word, for those who count."""
    return "sent" if outcome.delivered else "dead" if is_dead(outcome) else "failed"


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute(UNIX_TIME[connection.vendor])
        [seconds] = cursor.fetchone()
        return datetime.fromtimestamp(float(seconds), UTC)
