"""Records the results of attempts, unless another worker leased the delivery in the meantime."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from django.db import transaction
from django.db.models import F, Value
from django.utils.translation import gettext_noop

from library_site.db.sql import execute
from library_site.jobs.leases import finish_rows, select_leased
from library_site.jobs.retries import EVENT_RETRIES, retry_rows
from webhooks.delivery.leases import LeasedDelivery
from webhooks.endpoints import disable_endpoints
from webhooks.models import Attempt, Delivery, Endpoint

# After this many dead deliveries in a row, an endpoint is disabled.
MAX_DEAD_IN_A_ROW = 10
DISABLED_REASON = gettext_noop("%(count)s deliveries in a row failed for good.") % {"count": MAX_DEAD_IN_A_ROW}
# The row of DeliveryCount that this process updates.
COUNT_SHARDS = 16
COUNT_SHARD = os.getpid() % COUNT_SHARDS
ADD_COUNTS_SQL = (
    "INSERT INTO webhooks_deliverycount (shard, sent, failed, dead) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT (shard) DO UPDATE SET sent = webhooks_deliverycount.sent + excluded.sent,"
    " failed = webhooks_deliverycount.failed + excluded.failed, dead = webhooks_deliverycount.dead + excluded.dead"
)


class AttemptResult(NamedTuple):
    """The result of an attempt.

    `retry_after` is the delay that the receiver requests, in seconds. A permanent failure is not retried.
    """

    delivery: LeasedDelivery
    started_at: datetime
    milliseconds: int
    status: int | None = None
    error: str = ""
    answer: bytes = b""
    retry_after: int | None = None
    is_permanent: bool = False

    @property
    def is_delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def outcome(self) -> Literal["sent", "failed", "dead"]:
        """It is dead if there is no further attempt: the failure is permanent, or the attempt was the last."""
        if self.is_delivered:
            return "sent"
        return "dead" if self.is_permanent or EVENT_RETRIES.is_last(self.delivery.attempted + 1) else "failed"


@transaction.atomic
def record_results(results: Sequence[AttemptResult], chance: Callable[[], float]) -> list[Endpoint]:
    """Records results, and returns the endpoints that it disabled.

    `chance` returns numbers from 0 to 1, which spread the times of the next attempts.
    """
    # Endpoints are locked before deliveries, as in a claim: otherwise the two could deadlock.
    disabled_endpoints = count_dead(results)
    current = drop_stale(results, lock=True)
    Attempt.objects.bulk_create(map(build_attempt, current))
    finish_rows(Delivery, [result.delivery.pk for result in current if result.is_delivered], Delivery.State.DELIVERED)
    finish_rows(Delivery, [result.delivery.pk for result in current if result.outcome == "dead"], Delivery.State.DEAD)
    # One statement for all that failed alike: one for each would make a dead receiver dearer than others.
    failed = defaultdict(list)
    for result in current:
        if result.outcome == "failed":
            failed[result.delivery.attempted, result.retry_after].append(result)
    for results_alike in failed.values():
        delay = get_next_delay(results_alike[0], chance())
        retry_rows(Delivery, [result.delivery.pk for result in results_alike], delay)
    # This comes last: other workers may wait for the row until the transaction ends.
    if counts := Counter(result.outcome for result in current):
        execute(ADD_COUNTS_SQL, [COUNT_SHARD, counts["sent"], counts["failed"], counts["dead"]])
    return disabled_endpoints


def drop_stale(results: Sequence[AttemptResult], lock: bool = False) -> list[AttemptResult]:
    """Drops late results: another worker leased the delivery in the meantime."""
    leases = {result.delivery.pk: result.delivery.lease for result in results}
    leased_ids = select_leased(Delivery, leases, lock)
    return [result for result in results if result.delivery.pk in leased_ids]


def build_attempt(result: AttemptResult) -> Attempt:
    names = ("started_at", "milliseconds", "status", "error", "answer")
    return Attempt(delivery_id=result.delivery.pk, **{name: getattr(result, name) for name in names})


def get_next_delay(result: AttemptResult, chance: float) -> timedelta:
    """Returns the delay before the next attempt: the schedule's, or a longer one if the receiver requests it."""
    requested_delay = timedelta(seconds=min(result.retry_after or 0, EVENT_RETRIES.delays[-1]))
    return max(EVENT_RETRIES.get_delay(result.delivery.attempted + 1, chance), requested_delay)


def count_dead(results: Sequence[AttemptResult]) -> list[Endpoint]:
    """Counts the dead deliveries in a row of each endpoint. Returns the endpoints that it disabled."""
    healthy_ids = {result.delivery.endpoint_id for result in results if result.is_delivered}
    recovered_ids = Endpoint.objects.filter(pk__in=healthy_ids, dead_in_a_row__gt=0).values_list("pk", flat=True)
    dead = [one for one in results if one.outcome == "dead" and one.delivery.endpoint_id not in healthy_ids]
    dead_counts = Counter(result.delivery.endpoint_id for result in drop_stale(dead)) if dead else Counter[int]()
    counts = dict.fromkeys(recovered_ids, Value(0)) | {pk: F("dead_in_a_row") + dead_counts[pk] for pk in dead_counts}
    # In the order of ids: otherwise two workers could deadlock.
    for pk in sorted(counts):
        Endpoint.objects.filter(pk=pk).update(dead_in_a_row=counts[pk])
    if not dead_counts:
        return []
    failing_endpoints = Endpoint.objects.filter(pk__in=dead_counts, dead_in_a_row__gte=MAX_DEAD_IN_A_ROW)
    return disable_endpoints(failing_endpoints, DISABLED_REASON)
