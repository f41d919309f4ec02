"""What is claimed, by whom, and what becomes of it."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from library_site.db import sql
from tests.support.endpoints import SECRET, claim, endpoint, event, listener
from webhooks import attempts, delivery, endpoints
from webhooks.attempts import Outcome, record_outcomes
from webhooks.delivery import LeasedDelivery
from webhooks.models import Attempt, Delivery, Endpoint
from webhooks.queue import MAX_LOST_WORKERS

pytestmark = pytest.mark.usefixtures("db")
MOMENT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def outcome(claimed: LeasedDelivery, status: int | None = 200, **members: Any) -> Outcome:
    return Outcome(claimed, MOMENT, 12, status, **members)


def recorded(*outcomes: Outcome, chance: float = 0.5) -> list[Endpoint]:
    return record_outcomes(outcomes, lambda: chance)


def end_leases() -> None:
    """As time does."""
    Delivery.objects.filter(next_at__isnull=False).update(next_at=timezone.now() - timedelta(minutes=1))


def seconds_until_due() -> float:
    due: datetime = Delivery.objects.get().next_at  # type: ignore[assignment]  # it waits
    return (due - timezone.now()).total_seconds()


def test_what_is_due_is_claimed_with_all_it_takes_to_send_it() -> None:
    listening = endpoint(form="A")
    event()
    [claimed] = claim(10)
    [one] = Delivery.objects.select_related("event")
    assert one.lease is not None
    assert claimed == LeasedDelivery(
        one.pk, one.lease, 0, listening.pk, listening.url, "A", SECRET, "book.created", bytes(one.event.body)
    )
    assert (one.claimed, one.attempted, one.state) == (1, 0, "waiting")
    assert 25 < seconds_until_due() <= 30


def test_what_one_has_nobody_else_gets() -> None:
    endpoint()
    for number in range(5):
        event(number)
    first, second, third = claim(3), claim(3), claim(3)
    assert [len(first), len(second), len(third)] == [3, 2, 0]
    assert len({claimed.pk for claimed in first + second}) == 5


def test_a_lease_that_ended_is_another_workers() -> None:
    endpoint()
    event()
    [late] = claim(1)
    end_leases()
    [claimed] = claim(1)
    assert (claimed.pk, claimed.lease != late.lease) == (late.pk, True)
    recorded(outcome(late, 500))
    assert not Attempt.objects.exists()
    recorded(outcome(claimed))
    recorded(outcome(late, 500))
    assert Delivery.objects.values_list("state", "attempted", "claimed").get() == ("delivered", 1, 2)


def test_a_limit_in_flight_is_kept_over_all_workers() -> None:
    endpoint(in_flight_limit=2)
    for number in range(5):
        event(number)
    first = claim(10)
    assert (len(first), len(claim(10))) == (2, 0)
    recorded(outcome(first[0]))
    assert len(claim(10)) == 1


def test_endpoints_share_what_a_worker_has_room_for() -> None:
    owner = listener()
    few, many = endpoint(owner, kinds="book.deleted"), endpoint(owner)
    for number in range(10):
        event(number)
    Delivery.objects.filter(pk__in=Delivery.objects.order_by("pk").values("pk")[:2]).update(endpoint=few)
    claimed = [one.endpoint_id for one in claim(6)]
    assert (claimed.count(few.pk), claimed.count(many.pk)) == (2, 3)


@pytest.mark.parametrize("change", [{"state": "disabled"}, {"state": "deleted"}, {"owner": None}])
def test_nothing_is_claimed_for_who_does_not_listen_any_more(change: dict[str, Any]) -> None:
    endpoint()
    event()
    Endpoint.objects.update(**change)
    assert claim(10) == []


def test_what_was_delivered_is_over() -> None:
    endpoint()
    event()
    [claimed] = claim(1)
    recorded(outcome(claimed, 204, answer=b"thanks"))
    one = Delivery.objects.get()
    assert (one.state, one.attempted, one.lease, one.next_at) == ("delivered", 1, None, None)
    assert one.finished_at is not None
    made = Attempt.objects.get()
    assert (made.delivery, made.started_at, made.milliseconds) == (one, MOMENT, 12)
    assert (made.status, made.error, bytes(made.answer)) == (204, "", b"thanks")


@pytest.mark.parametrize("status", [100, 199, 300, 302, 400, 404, 410, 429, 500, 503, None])
def test_anything_but_2xx_is_tried_again(status: int | None) -> None:
    endpoint()
    event()
    recorded(outcome(claim(1)[0], status))
    assert Delivery.objects.values_list("state", "attempted", "lease").get() == ("waiting", 1, None)
    assert 8 < seconds_until_due() < 12


@pytest.mark.parametrize(("attempted", "seconds"), [(0, 10), (1, 60), (2, 600), (3, 3600)])
@pytest.mark.parametrize(("chance", "factor"), [(0.0, 0.8), (0.5, 1.0), (1.0, 1.2)])
def test_each_attempt_waits_longer(attempted: int, seconds: float, chance: float, factor: float) -> None:
    endpoint()
    event()
    Delivery.objects.update(attempted=attempted)
    recorded(outcome(claim(1)[0], 500), chance=chance)
    assert seconds_until_due() == pytest.approx(seconds * factor, abs=2)


@pytest.mark.parametrize(
    ("asked", "expected"), [(0, 10), (5, 10), (-100, 10), (120, 120), (3600, 3600), (10**9, 3600), (None, 10)]
)
def test_a_receiver_may_ask_for_time_up_to_an_hour(asked: float | None, expected: float) -> None:
    endpoint()
    event()
    recorded(outcome(claim(1)[0], 503, retry_after=asked))
    assert seconds_until_due() == pytest.approx(expected, abs=2)


def test_the_fifth_attempt_is_the_last() -> None:
    endpoint()
    event()
    Delivery.objects.update(attempted=4)
    recorded(outcome(claim(1)[0], 500))
    assert Delivery.objects.values_list("state", "attempted", "lease", "next_at").get() == ("dead", 5, None, None)


def test_a_refused_address_is_not_tried_again() -> None:
    endpoint()
    event()
    recorded(outcome(claim(1)[0], None, error="The address is not a public one.", refused=True))
    assert Delivery.objects.values_list("state", "attempted").get() == ("dead", 1)


def test_what_workers_die_of_is_left_in_the_end() -> None:
    endpoint()
    event()
    poisoned = []
    for _ in range(MAX_LOST_WORKERS + 1):
        poisoned += [one.poisoned for one in claim(1)]
        end_leases()
    assert poisoned == [False] * MAX_LOST_WORKERS + [True]


@pytest.fixture
def failing() -> Endpoint:
    """An endpoint with ten deliveries, each at its last attempt."""
    made = endpoint()
    for number in range(10):
        event(number)
    Delivery.objects.update(attempted=4)
    return made


def test_ten_dead_deliveries_in_a_row_disable_an_endpoint(failing: Endpoint) -> None:
    claimed = claim(10)
    assert recorded(*(outcome(one, 500) for one in claimed[:9])) == []
    [disabled] = recorded(outcome(claimed[9], 500))
    assert (disabled, disabled.reason) == (failing, attempts.DISABLED_REASON)
    failing.refresh_from_db()
    assert (failing.state, failing.reason) == ("disabled", "10 deliveries in a row failed for good.")
    event(11)
    assert Delivery.objects.count() == 10


def test_a_delivery_that_comes_through_begins_the_row_anew(failing: Endpoint) -> None:
    claimed = claim(10)
    recorded(*(outcome(one, 500) for one in claimed[:8]))
    recorded(outcome(claimed[8]))
    recorded(outcome(claimed[9], 500))
    failing.refresh_from_db()
    assert (failing.state, failing.dead_in_a_row) == ("active", 1)


def test_an_endpoint_whose_secret_cannot_be_read_is_disabled() -> None:
    made = endpoint()
    made.secrets.update(sealed="nonsense")
    event()
    assert delivery.claim_due(1, {}) == ([], [made])
    made.refresh_from_db()
    assert (made.state, made.reason) == ("disabled", endpoints.UNREADABLE_SECRET)


def test_a_new_secret_is_all_that_it_lacked() -> None:
    made = endpoint()
    made.secrets.update(sealed="nonsense")
    event()
    assert claim(1) == []
    endpoints.add_secret(made, SECRET, timezone.now())
    endpoints.promote_secret(made)
    assert [one.secret for one in claim(1)] == [SECRET]


def test_who_hangs_leaves_room_for_who_comes_later() -> None:
    owner = listener()
    hanging, late = endpoint(owner, in_flight_limit=1000), endpoint(owner, kinds="book.deleted")
    for number in range(20):
        event(number)
    flying: Counter[int] = Counter()
    while more := delivery.claim_due(12, flying).deliveries:
        flying.update(one.endpoint_id for one in more)
    assert flying == {hanging.pk: 6}
    Delivery.objects.filter(lease=None).update(endpoint=late)
    assert {one.endpoint_id for one in delivery.claim_due(12, flying).deliveries} == {late.pk}


def test_nothing_is_sent_to_who_may_not_have_endpoints_any_more() -> None:
    made = endpoint()
    event()
    made.owner.user_permissions.clear()  # type: ignore[union-attr]  # it has one
    assert (claim(1), delivery.get_backlog().waiting) == ([], 0)


def test_a_disabled_endpoint_keeps_what_waits_for_it() -> None:
    made = endpoint()
    event()
    Endpoint.objects.update(state="disabled")
    assert claim(1) == []
    Endpoint.objects.update(state="active")
    assert [one.endpoint_id for one in claim(1)] == [made.pk]


def test_a_claim_asks_the_same_however_many_endpoints_there_are(django_assert_num_queries: Any) -> None:
    owner = listener()
    endpoint(owner)
    event()
    with django_assert_num_queries(6 + queries_of_a_transaction()):
        claim(100)
    for _ in range(20):
        endpoint(owner)
    event()
    Delivery.objects.update(next_at=F("created_at"), lease=None)
    with django_assert_num_queries(6 + queries_of_a_transaction()):
        claim(100)


def queries_of_a_transaction() -> int:
    """The savepoint inside the test's own."""
    return 2 if connection.in_atomic_block else 0


def test_the_backlog_tells_what_waits() -> None:
    assert delivery.get_backlog() == (0, None)
    endpoint()
    event()
    found = delivery.get_backlog()
    assert (found.waiting, found.oldest) == (1, Delivery.objects.get().created_at)


def test_the_databases_clock_is_read() -> None:
    assert abs((sql.get_database_time() - timezone.now()).total_seconds()) < 5
