"""What came of an attempt is recorded, unless the delivery is another worker's by now."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import F

from webhooks.delivery import LeasedDelivery
from webhooks.endpoints import disable_endpoints
from webhooks.models import Delivery, Endpoint
from webhooks.queue import MAX_RETRY_DELAY, finish_rows, get_retry_delay, is_last_attempt, keep_leased, retry_row

# So many in a row, and an endpoint is sent nothing more.
MAX_DEAD_IN_A_ROW = 10
DISABLED_REASON = f"{MAX_DEAD_IN_A_ROW} deliveries in a row failed for good."
INSERT_ATTEMPTS_SQL = "INSERT INTO webhooks_attempt (delivery_id, started_at, milliseconds, status, error, answer) {}"
VALUES_SQL = "VALUES (%s, %s, %s, %s, %s, %s)"
# One statement for many rows costs PostgreSQL half of what as many statements do.
UNNEST_SQL = (
    "SELECT * FROM unnest(%s::bigint[], %s::timestamptz[], %s::integer[], %s::smallint[], %s::text[], %s::bytea[])"
)


class Outcome(NamedTuple):
    """What came of an attempt. `retry_after` is what the receiver asked for, in seconds; `refused` is for good."""

    claimed: LeasedDelivery
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


@transaction.atomic
def record_outcomes(outcomes: Sequence[Outcome], chance: Callable[[], float]) -> list[Endpoint]:
    """Answers the endpoints that were disabled for it. `chance` from 0 to 1 spreads what is tried again."""
    # Endpoints before deliveries, as a claim takes them.
    disabled = count_dead(outcomes)
    ours = keep_current(outcomes, lock=True)
    insert_attempts(ours)
    finish_rows(Delivery, [one.claimed.pk for one in ours if one.delivered], Delivery.State.DELIVERED)
    finish_rows(Delivery, [one.claimed.pk for one in ours if is_dead(one)], Delivery.State.DEAD)
    for outcome in ours:
        if not outcome.delivered and not is_dead(outcome):
            retry_row(Delivery, outcome.claimed.pk, get_next_delay(outcome, chance()))
    return disabled


def keep_current(outcomes: Sequence[Outcome], lock: bool = False) -> list[Outcome]:
    """Drops late outcomes: another worker has the delivery by now."""
    leased = keep_leased(Delivery, {one.claimed.pk: one.claimed.lease for one in outcomes}, lock)
    return [outcome for outcome in outcomes if outcome.claimed.pk in leased]


def insert_attempts(outcomes: Collection[Outcome]) -> None:
    rows = list(map(attempt_row, outcomes))
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.executemany(INSERT_ATTEMPTS_SQL.format(VALUES_SQL), rows)
        elif rows:
            cursor.execute(INSERT_ATTEMPTS_SQL.format(UNNEST_SQL), [list(column) for column in zip(*rows, strict=True)])


def attempt_row(outcome: Outcome) -> tuple[int | str | bytes | None, ...]:
    """The values of ATTEMPTS."""
    started_at = connection.ops.adapt_datetimefield_value(outcome.started_at)
    return outcome.claimed.pk, started_at, outcome.milliseconds, outcome.status, outcome.error, outcome.answer


def get_next_delay(outcome: Outcome, chance: float) -> timedelta:
    """Until the next attempt: the schedule's, or longer where the receiver asks for it."""
    asked = timedelta(seconds=min(outcome.retry_after or 0, MAX_RETRY_DELAY.total_seconds()))
    return max(get_retry_delay(outcome.claimed.attempted + 1, chance), asked)


def is_dead(outcome: Outcome) -> bool:
    """Refused, or failed for the last time."""
    return not outcome.delivered and (outcome.refused or is_last_attempt(outcome.claimed.attempted + 1))


def count_dead(outcomes: Sequence[Outcome]) -> list[Endpoint]:
    """Counts the deliveries in a row that each endpoint let die; answers those that are disabled for it."""
    well = {outcome.claimed.endpoint_id for outcome in outcomes if outcome.delivered}
    Endpoint.objects.filter(pk__in=well, dead_in_a_row__gt=0).update(dead_in_a_row=0)
    dead = [outcome for outcome in outcomes if is_dead(outcome) and outcome.claimed.endpoint_id not in well]
    if not dead:
        return []
    ill = Counter(outcome.claimed.endpoint_id for outcome in keep_current(dead))
    for pk in sorted(ill):
        Endpoint.objects.filter(pk=pk).update(dead_in_a_row=F("dead_in_a_row") + ill[pk])
    return disable_endpoints(Endpoint.objects.filter(pk__in=ill, dead_in_a_row__gte=MAX_DEAD_IN_A_ROW), DISABLED_REASON)


def name_result(outcome: Outcome) -> str:
    """In a word, for those who count."""
    if outcome.delivered:
        return "sent"
    return "dead" if is_dead(outcome) else "failed"
