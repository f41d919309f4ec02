"""What is due is claimed, and sent by nobody else while its lease lasts. All times are the database's."""

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count, Exists, Min, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Coalesce, Now

from library_site.db.sql import fetch_all, now_plus
from webhooks.encryption import DecryptionError, decrypt
from webhooks.endpoints import UNREADABLE_SECRET, disable_endpoints, reachable_endpoints
from webhooks.models import Delivery, Endpoint, EndpointSecret, Event
from webhooks.queue import is_poisoned, lease_rows

# That a report counts.
MAX_BACKLOG_COUNT = 10_000
# The locks that a claim holds.
MAX_LOCKED_ENDPOINTS = 200
# What is due longest to each of these endpoints: PostgreSQL would plan each part of a union anew, and the subqueries of
# SQLite do not see what they are joined to.
DUE_LATERAL_SQL = (
    "SELECT due.id FROM (VALUES {1}) AS share (endpoint, most) CROSS JOIN LATERAL"
    " (SELECT id FROM webhooks_delivery WHERE endpoint_id = share.endpoint AND next_at <= {0}"
    " ORDER BY next_at LIMIT share.most) AS due"
)
DUE_UNION_SQL = (
    "SELECT id FROM (SELECT id FROM webhooks_delivery WHERE next_at <= {} AND endpoint_id = {}"
    " ORDER BY next_at LIMIT {})"
)

# A worker opens each secret once.
decrypt_cached = lru_cache(maxsize=10_000)(decrypt)


class LeasedDelivery(NamedTuple):
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

    deliveries: list[LeasedDelivery]
    disabled: list[Endpoint]


class LockedEndpoint(NamedTuple):
    """An endpoint to which nobody else claims deliveries until the end of the transaction."""

    pk: int
    url: str
    form: str
    in_flight_limit: int
    encrypted_secret: str

    def decrypt(self) -> tuple[int, str, str, str]:
        return self.pk, self.url, self.form, decrypt_cached(self.encrypted_secret)


class LeasedRow(NamedTuple):
    """Columns of a leased delivery."""

    id: int
    endpoint_id: int
    event_id: int
    attempted: int
    claimed: int


class Backlog(NamedTuple):
    """What waits (COUNTED at the most), and since when the oldest of it does."""

    waiting: int
    oldest: datetime | None


def claim_due(concurrency: int, flying: Mapping[int, int]) -> Claim:
    """Some of what is due, the endpoints sharing alike, none beyond its own limit.

    `flying` is how many deliveries to each endpoint this worker has, of `concurrency` that it can have.
    """
    # On SQLite a transaction would hold up writers.
    if not pending_deliveries().filter(next_at__lte=Now()).exists():
        return Claim([], [])
    with transaction.atomic():
        found = list(map(LockedEndpoint._make, fetch_all(*endpoints_due_sql())))
        endpoints = {endpoint.pk: endpoint for endpoint in found if is_decryptable(endpoint.encrypted_secret)}
        lost = [endpoint.pk for endpoint in found if endpoint.pk not in endpoints]
        disabled = disable_endpoints(Endpoint.objects.filter(pk__in=lost), UNREADABLE_SECRET)
        shares = divide_capacity(endpoints.values(), dict(fetch_all(*in_flight_sql())), flying, concurrency)
        lease, taken = lease_due(shares)
        events = Event.objects.filter(pk__in={one.event_id for one in taken}).values_list("pk", "kind", "body")
        kinds_and_bodies = {pk: (kind, bytes(body)) for pk, kind, body in events}
    return Claim(
        [build_claimed(one, lease, endpoints[one.endpoint_id], *kinds_and_bodies[one.event_id]) for one in taken],
        disabled,
    )


def build_claimed(taken: LeasedRow, lease: UUID, endpoint: LockedEndpoint, kind: str, body: bytes) -> LeasedDelivery:
    poisoned = is_poisoned(taken.attempted, taken.claimed)
    return LeasedDelivery(taken.id, lease, taken.attempted, *endpoint.decrypt(), kind, body, poisoned)


def pending_deliveries() -> QuerySet[Delivery]:
    """What is still to be sent, or is being sent."""
    return Delivery.objects.filter(next_at__isnull=False, endpoint__in=reachable_endpoints())


@cache
def endpoints_due_sql() -> tuple[str, tuple[Any, ...]]:
    """The statement that holds those to whom something is due."""
    due = Delivery.objects.filter(next_at__lte=Now(), endpoint=OuterRef("pk"))
    active = EndpointSecret.objects.filter(endpoint=OuterRef("pk"), state=EndpointSecret.State.ACTIVE)
    sealed = Coalesce(Subquery(active.values("sealed")), Value("", TextField()))
    held = (
        reachable_endpoints()
        .filter(Exists(due))
        .select_for_update(skip_locked=True, no_key=True, of=("self",))
        .order_by("?")
        .values_list("pk", "url", "form", "in_flight_limit", sealed)[:MAX_LOCKED_ENDPOINTS]
    )
    return held.query.sql_with_params()


@cache
def in_flight_sql() -> tuple[str, tuple[Any, ...]]:
    """The statement that counts what all workers have under way to each endpoint: asked when it is held."""
    flying = Delivery.objects.filter(lease__isnull=False, next_at__gt=Now())
    return flying.values_list("endpoint").annotate(count=Count("pk")).query.sql_with_params()


def is_decryptable(sealed: str) -> bool:
    try:
        decrypt_cached(sealed)
    except DecryptionError:
        return False
    return True


def max_claim(concurrency: int) -> int:
    """A third, so that while some are claimed, others are being sent and others recorded."""
    return -(-concurrency // 3)


def divide_capacity(
    endpoints: Collection[LockedEndpoint], everywhere: Mapping[int, int], flying: Mapping[int, int], concurrency: int
) -> dict[int, int]:
    """How many more deliveries each endpoint is sent: what room there is in equal shares, within its own limit.

    One share is nobody's, so that who hangs leaves room for those who come later.
    """
    fair = max(1, concurrency // (len(endpoints) + 1))
    room = min(concurrency - sum(flying.values()), max_claim(concurrency))
    shares = {}
    for place, endpoint in enumerate(endpoints):
        share = -(-room // (len(endpoints) - place))
        within_limit = endpoint.in_flight_limit - everywhere.get(endpoint.pk, 0)
        shares[endpoint.pk] = max(0, min(share, within_limit, fair - flying.get(endpoint.pk, 0)))
        room -= shares[endpoint.pk]
    return shares


def lease_due(shares: Mapping[int, int]) -> tuple[UUID, list[LeasedRow]]:
    """Leases the deliveries that are due longest to each endpoint."""
    pks = [pk for (pk,) in fetch_all(due_sql(shares))] if shares else []
    lease, rows = lease_rows(Delivery, pks, LeasedRow._fields)
    return lease, [LeasedRow(*row) for row in rows]


def due_sql(shares: Mapping[int, int]) -> str:
    """The statement that finds it."""
    if connection.vendor == "postgresql":
        return DUE_LATERAL_SQL.format(now_plus(0), ", ".join(map(str, shares.items())))
    return " UNION ALL ".join(DUE_UNION_SQL.format(now_plus(0), endpoint, share) for endpoint, share in shares.items())


def get_backlog() -> Backlog:
    counted = pending_deliveries().order_by("endpoint", "next_at")[:MAX_BACKLOG_COUNT]
    return Backlog(**counted.aggregate(waiting=Count("pk"), oldest=Min("created_at")))
