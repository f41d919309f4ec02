"""What is due is claimed, and sent by nobody else while its lease lasts. All times are the database's."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models import Count, Exists, Min, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Coalesce, Now

from library_site.db.sql import among, asked, from_now
from webhooks.encryption import SealBroken, unseal
from webhooks.endpoints import UNREADABLE, disable, reachable
from webhooks.models import Delivery, Endpoint, EndpointSecret, Event
from webhooks.queue import LEASE, POISON

# That a report counts.
COUNTED = 10_000
# The locks that a claim holds.
MOST_ENDPOINTS = 200
# What is due longest to each of these endpoints: PostgreSQL would plan each part of a union anew, and the subqueries of
# SQLite do not see what they are joined to.
LATERAL = (
    "SELECT due.id FROM (VALUES {1}) AS share (endpoint, most) CROSS JOIN LATERAL"
    " (SELECT id FROM webhooks_delivery WHERE endpoint_id = share.endpoint AND next_at <= {0}"
    " ORDER BY next_at LIMIT share.most) AS due"
)
PART = (
    "SELECT id FROM (SELECT id FROM webhooks_delivery WHERE next_at <= {} AND endpoint_id = {}"
    " ORDER BY next_at LIMIT {})"
)
TAKE = (
    "UPDATE webhooks_delivery SET next_at = {}, lease = %s, claimed = claimed + 1 WHERE id IN ({}) AND next_at <= {}"
    " RETURNING id, endpoint_id, event_id, attempted, claimed"
)
UNIX_TIME = {
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400",
}

# A worker opens each secret once.
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
    # Too many workers died of it: it is not sent.
    poisoned: bool = False


class Claim(NamedTuple):
    """What is to be sent, and the endpoints that were disabled since they cannot be sent anything."""

    deliveries: list[Claimed]
    disabled: list[Endpoint]


class Held(NamedTuple):
    """An endpoint to which nobody else claims deliveries until the end of the transaction."""

    pk: int
    url: str
    form: str
    in_flight_limit: int
    sealed: str

    def opened(self) -> tuple[int, str, str, str]:
        return self.pk, self.url, self.form, opened(self.sealed)


class Taken(NamedTuple):
    """A row of what was leased."""

    pk: int
    endpoint_id: int
    event_id: int
    attempted: int
    claimed: int


class Backlog(NamedTuple):
    """What waits (COUNTED at the most), and since when the oldest of it does."""

    waiting: int
    oldest: datetime | None


def claim(concurrency: int, flying: Mapping[int, int]) -> Claim:
    """Some of what is due, the endpoints sharing alike, none beyond its own limit.

    `flying` is how many deliveries to each endpoint this worker has, of `concurrency` that it can have.
    """
    # On SQLite a transaction would hold up writers.
    if not waiting().filter(next_at__lte=Now()).exists():
        return Claim([], [])
    lease = uuid4()
    with transaction.atomic():
        found = list(map(Held._make, asked(*with_work())))
        endpoints = {endpoint.pk: endpoint for endpoint in found if readable(endpoint.sealed)}
        lost = [endpoint.pk for endpoint in found if endpoint.pk not in endpoints]
        disabled = disable(Endpoint.objects.filter(pk__in=lost), UNREADABLE)
        taken = take(shared(endpoints.values(), dict(asked(*in_flight())), flying, concurrency), lease)
        events = Event.objects.filter(pk__in={one.event_id for one in taken}).values_list("pk", "kind", "body")
        kinds_and_bodies = {pk: (kind, bytes(body)) for pk, kind, body in events}
    return Claim(
        [claimed(one, lease, endpoints[one.endpoint_id], *kinds_and_bodies[one.event_id]) for one in taken], disabled
    )


def claimed(taken: Taken, lease: UUID, endpoint: Held, kind: str, body: bytes) -> Claimed:
    poisoned = taken.claimed > taken.attempted + POISON
    return Claimed(taken.pk, lease, taken.attempted, *endpoint.opened(), kind, body, poisoned)


def waiting() -> QuerySet[Delivery]:
    """What is still to be sent, or is being sent."""
    return Delivery.objects.filter(next_at__isnull=False, endpoint__in=reachable())


@cache
def with_work() -> tuple[str, tuple[Any, ...]]:
    """The statement that holds those to whom something is due."""
    due = Delivery.objects.filter(next_at__lte=Now(), endpoint=OuterRef("pk"))
    active = EndpointSecret.objects.filter(endpoint=OuterRef("pk"), state=EndpointSecret.State.ACTIVE)
    sealed = Coalesce(Subquery(active.values("sealed")), Value("", TextField()))
    held = (
        reachable()
        .filter(Exists(due))
        .select_for_update(skip_locked=True, no_key=True, of=("self",))
        .order_by("?")
        .values_list("pk", "url", "form", "in_flight_limit", sealed)[:MOST_ENDPOINTS]
    )
    return held.query.sql_with_params()


@cache
def in_flight() -> tuple[str, tuple[Any, ...]]:
    """The statement that counts what all workers have under way to each endpoint: asked when it is held."""
    flying = Delivery.objects.filter(lease__isnull=False, next_at__gt=Now())
    return flying.values_list("endpoint").annotate(count=Count("pk")).query.sql_with_params()


def readable(sealed: str) -> bool:
    try:
        opened(sealed)
    except SealBroken:
        return False
    return True


def most_at_once(concurrency: int) -> int:
    """A third, so that while some are claimed, others are being sent and others recorded."""
    return -(-concurrency // 3)


def shared(
    endpoints: Collection[Held], everywhere: Mapping[int, int], flying: Mapping[int, int], concurrency: int
) -> dict[int, int]:
    """How many more deliveries each endpoint is sent: what room there is in equal shares, within its own limit.

    One share is nobody's, so that who hangs leaves room for those who come later.
    """
    fair = max(1, concurrency // (len(endpoints) + 1))
    room = min(concurrency - sum(flying.values()), most_at_once(concurrency))
    shares = {}
    for place, endpoint in enumerate(endpoints):
        share = -(-room // (len(endpoints) - place))
        within_limit = endpoint.in_flight_limit - everywhere.get(endpoint.pk, 0)
        shares[endpoint.pk] = max(0, min(share, within_limit, fair - flying.get(endpoint.pk, 0)))
        room -= shares[endpoint.pk]
    return shares


def take(shares: Mapping[int, int], lease: UUID) -> list[Taken]:
    """Leases to us what is due longest to each endpoint."""
    if not shares:
        return []
    pks = [pk for (pk,) in asked(due(shares))]
    return [Taken(*row) for row in asked(TAKE.format(from_now(LEASE.seconds), among(pks), from_now(0)), [lease.hex])]


def due(shares: Mapping[int, int]) -> str:
    """The statement that finds it."""
    if connection.vendor == "postgresql":
        return LATERAL.format(from_now(0), ", ".join(map(str, shares.items())))
    return " UNION ALL ".join(PART.format(from_now(0), endpoint, share) for endpoint, share in shares.items())


def backlog() -> Backlog:
    counted = waiting().order_by("endpoint", "next_at")[:COUNTED]
    return Backlog(**counted.aggregate(waiting=Count("pk"), oldest=Min("created_at")))


def database_now() -> datetime:
    [(seconds,)] = asked(UNIX_TIME[connection.vendor], [])
    return datetime.fromtimestamp(float(seconds), UTC)
