"""Leases due deliveries. During a lease no other worker sends the delivery. All times are from the database's clock."""

from collections.abc import Callable, Collection, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Coalesce, Now

from library_site.db.sql import CompiledQuery, fetch_all, now_plus
from library_site.jobs.leases import is_poisoned, lease_rows
from webhooks.encryption import can_sign, decrypt_secret
from webhooks.endpoints import UNREADABLE_SECRET, disable_endpoints, list_reachable_endpoints
from webhooks.models import Delivery, Endpoint, EndpointSecret, Event, SignatureForm

# The largest number of endpoints that a claim locks.
MAX_LOCKED_ENDPOINTS = 50
IS_IN_FLIGHT = Q(lease__isnull=False, next_at__gt=Now())
# Selects the longest due deliveries of an endpoint.
DUE_SQL = (
    "SELECT id FROM (SELECT id FROM webhooks_delivery WHERE next_at <= {} AND endpoint_id = {}"
    " ORDER BY next_at LIMIT {}) AS due"
)

# A worker decrypts and checks each secret only once.
decrypt_cached = lru_cache(maxsize=10_000)(decrypt_secret)
can_sign_cached = lru_cache(maxsize=10_000)(can_sign)


class LeasedDelivery(NamedTuple):
    """A delivery that this worker has leased for LEASE_TIME, with all data to send it."""

    pk: int
    lease: UUID
    attempted: int
    endpoint_id: int
    url: str
    form: str
    # The secrets that sign.
    secrets: tuple[str, ...]
    event_id: str
    kind: str
    body: bytes
    traceparent: str | None = None
    # Too many workers died during a lease of it: it is not sent.
    is_poisoned: bool = False


class DeliveryClaim(NamedTuple):
    """The deliveries to send, and the endpoints that were disabled because of an unusable secret."""

    deliveries: list[LeasedDelivery]
    disabled_endpoints: list[Endpoint]


class LockedEndpoint(NamedTuple):
    """An endpoint that this transaction has locked: no other worker claims its deliveries."""

    pk: int
    url: str
    form: str
    in_flight_limit: int
    encrypted_secret: str
    encrypted_pending_secret: str

    def list_signing_secrets(self) -> tuple[str, ...]:
        """Returns the active secret, in form C also a pending one: the receiver can change its own at any time."""
        pending = [self.encrypted_pending_secret] if self.form == SignatureForm.C else []
        usable = [secret for secret in pending if can_sign_cached(self.form, secret)]
        return tuple(map(decrypt_cached, [self.encrypted_secret, *usable]))


class LeasedRow(NamedTuple):
    id: int
    endpoint_id: int
    event_id: int
    attempted: int
    claimed: int


def claim_deliveries(concurrency: int, in_flight: Mapping[int, int]) -> DeliveryClaim:
    """Leases due deliveries, in equal shares for the endpoints, and within the limit of each endpoint.

    `in_flight` is the number of this worker's deliveries in flight, by endpoint; `concurrency` limits their sum.
    """
    # Checked outside of a transaction: on SQLite, a transaction would block other writers.
    if not compile_query(select_first_due).fetch_all():
        return DeliveryClaim([], [])
    with transaction.atomic():
        locked_endpoints = [LockedEndpoint(**row) for row in compile_query(select_endpoints_due).fetch_all()]
        endpoints = {
            endpoint.pk: endpoint
            for endpoint in locked_endpoints
            if can_sign_cached(endpoint.form, endpoint.encrypted_secret)
        }
        unreadable_ids = [endpoint.pk for endpoint in locked_endpoints if endpoint.pk not in endpoints]
        disabled_endpoints = disable_endpoints(Endpoint.objects.filter(pk__in=unreadable_ids), UNREADABLE_SECRET)
        # Of all workers. The endpoints are locked, so no count can grow.
        all_in_flight = dict(Delivery.objects.filter(IS_IN_FLIGHT).values_list("endpoint").annotate(count=Count("pk")))
        shares = divide_capacity(endpoints.values(), all_in_flight, in_flight, concurrency)
        lease, rows = lease_due(shares)
        events = {event.pk: event for event in Event.objects.filter(pk__in={row.event_id for row in rows})}
    deliveries = [build_delivery(row, lease, endpoints[row.endpoint_id], events[row.event_id]) for row in rows]
    return DeliveryClaim(deliveries, disabled_endpoints)


def build_delivery(row: LeasedRow, lease: UUID, endpoint: LockedEndpoint, event: Event) -> LeasedDelivery:
    return LeasedDelivery(
        pk=row.id,
        lease=lease,
        attempted=row.attempted,
        endpoint_id=endpoint.pk,
        url=endpoint.url,
        form=endpoint.form,
        secrets=endpoint.list_signing_secrets(),
        event_id=str(event.uuid),
        kind=event.kind,
        body=bytes(event.body),
        traceparent=event.traceparent,
        is_poisoned=is_poisoned(row.attempted, row.claimed),
    )


def list_pending_deliveries() -> QuerySet[Delivery]:
    """Selects deliveries that wait or are in flight, to endpoints that can receive them."""
    return Delivery.objects.filter(next_at__isnull=False, endpoint__in=list_reachable_endpoints())


@cache
def compile_query(select: Callable[[], QuerySet[Any, Any]]) -> CompiledQuery:
    """Django compiles it in fifty times the time of its execution, and a worker asks ten times a second."""
    return CompiledQuery(select())


def select_first_due() -> QuerySet[Delivery, Any]:
    return list_pending_deliveries().filter(next_at__lte=Now()).values("pk")[:1]


def select_endpoints_due() -> QuerySet[Endpoint, Any]:
    """Selects and locks endpoints with a due delivery, with the columns of LockedEndpoint."""
    due = Delivery.objects.filter(next_at__lte=Now(), endpoint=OuterRef("pk"))
    secrets = EndpointSecret.objects.filter(endpoint=OuterRef("pk"))
    active, pending = (
        Coalesce(Subquery(secrets.filter(state=state).values("sealed")), Value("", TextField()))
        for state in (EndpointSecret.State.ACTIVE, EndpointSecret.State.PENDING)
    )
    return (
        list_reachable_endpoints()
        .filter(Exists(due))
        .select_for_update(skip_locked=True, no_key=True, of=("self",))
        .order_by("?")
        .values("pk", "url", "form", "in_flight_limit", encrypted_secret=active, encrypted_pending_secret=pending)
    )[:MAX_LOCKED_ENDPOINTS]


def divide_capacity(
    endpoints: Collection[LockedEndpoint],
    all_in_flight: Mapping[int, int],
    in_flight: Mapping[int, int],
    concurrency: int,
) -> dict[int, int]:
    """Returns how many deliveries to claim for each endpoint: equal shares of the free capacity, within its limit.

    One share stays free, so that slow endpoints leave capacity for endpoints that become due later.
    """
    max_share = max(1, concurrency // (len(endpoints) + 1))
    capacity = min(concurrency - sum(in_flight.values()), get_claim_limit(concurrency))
    shares = {}
    for index, endpoint in enumerate(endpoints):
        share = -(-capacity // (len(endpoints) - index))
        endpoint_capacity = endpoint.in_flight_limit - all_in_flight.get(endpoint.pk, 0)
        shares[endpoint.pk] = max(0, min(share, endpoint_capacity, max_share - in_flight.get(endpoint.pk, 0)))
        capacity -= shares[endpoint.pk]
    return shares


def get_claim_limit(concurrency: int) -> int:
    """The largest claim: a third, so that at any time one third is claimed, one is sent and one is recorded."""
    return -(-concurrency // 3)


def lease_due(shares: Mapping[int, int]) -> tuple[UUID, list[LeasedRow]]:
    due = " UNION ALL ".join(DUE_SQL.format(now_plus(0), endpoint, share) for endpoint, share in shares.items())
    lease, rows = lease_rows(Delivery, [pk for (pk,) in fetch_all(due)] if due else [], LeasedRow._fields)
    return lease, [LeasedRow(*row) for row in rows]
