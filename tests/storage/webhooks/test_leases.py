"""How workers claim deliveries, and the state of each after an attempt."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from library_site.db.sql import execute
from library_site.jobs.leases import MAX_LOST_WORKERS
from tests.support.endpoints import OLD_SECRET, SECRET, claim_deliveries, create_endpoint, create_owner, publish_event
from webhooks import endpoints
from webhooks.delivery import attempts, leases
from webhooks.delivery.attempts import AttemptResult, record_results
from webhooks.delivery.leases import LeasedDelivery
from webhooks.encryption import encrypt_secret
from webhooks.models import Attempt, Delivery, Endpoint

pytestmark = pytest.mark.usefixtures("db")
MOMENT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def build_result(leased: LeasedDelivery, status: int | None = 200, **fields: Any) -> AttemptResult:
    return AttemptResult(leased, MOMENT, 12, status, **fields)


def record(*results: AttemptResult, chance: float = 0.5) -> list[Endpoint]:
    return record_results(results, lambda: chance)


def create_delivery(**fields: Any) -> Endpoint:
    """Creates an endpoint with one delivery."""
    endpoint = create_endpoint(**fields)
    publish_event()
    return endpoint


def end_leases() -> None:
    """Makes each delivery that waits due, as if its lease or its wait were over."""
    Delivery.objects.filter(next_at__isnull=False).update(next_at=timezone.now() - timedelta(minutes=1))


def get_seconds_until_due() -> float:
    due: datetime = Delivery.objects.get().next_at  # type: ignore[assignment]  # the delivery waits
    return (due - timezone.now()).total_seconds()


def test_a_due_delivery_is_claimed_with_all_that_sending_needs() -> None:
    endpoint = create_endpoint(form="A")
    publish_event()
    [leased] = claim_deliveries(10)
    [row] = Delivery.objects.select_related("event")
    assert row.lease is not None
    assert leased == LeasedDelivery(
        row.pk,
        row.lease,
        0,
        endpoint.pk,
        endpoint.url,
        "A",
        (SECRET,),
        str(row.event.uuid),
        "book.created",
        bytes(row.event.body),
    )
    assert (row.claimed, row.attempted, row.state) == (1, 0, "waiting")
    assert 25 < get_seconds_until_due() <= 30


def test_a_delivery_is_claimed_by_one_worker_at_a_time() -> None:
    create_endpoint()
    for number in range(5):
        publish_event(number)
    first, second, third = claim_deliveries(3), claim_deliveries(3), claim_deliveries(3)
    assert [len(first), len(second), len(third)] == [3, 2, 0]
    assert len({leased.pk for leased in first + second}) == 5


def test_a_delivery_whose_lease_ended_is_claimed_by_another_worker() -> None:
    create_delivery()
    [first] = claim_deliveries(1)
    end_leases()
    [second] = claim_deliveries(1)
    assert (second.pk, second.lease != first.lease) == (first.pk, True)
    record(build_result(first, 500))
    assert not Attempt.objects.exists()
    record(build_result(second, 204, answer=b"thanks"))
    record(build_result(first, 500))
    row, attempt = Delivery.objects.get(), Attempt.objects.get()
    assert (row.state, row.attempted, row.claimed, row.lease, row.next_at) == ("delivered", 1, 2, None, None)
    assert row.finished_at is not None
    assert (attempt.delivery, attempt.started_at, attempt.milliseconds) == (row, MOMENT, 12)
    assert (attempt.status, attempt.error, bytes(attempt.answer)) == (204, "", b"thanks")


def test_what_is_due_longest_to_an_endpoint_is_claimed_first() -> None:
    create_endpoint(in_flight_limit=2)
    for number in range(4):
        publish_event(number)
    pks = [*Delivery.objects.order_by("pk").values_list("pk", flat=True)]
    for minutes, pk in zip((1, 4, 2, 3), pks, strict=True):
        Delivery.objects.filter(pk=pk).update(next_at=timezone.now() - timedelta(minutes=minutes))
    assert {leased.pk for leased in claim_deliveries()} == {pks[1], pks[3]}


def test_the_in_flight_limit_of_an_endpoint_holds_across_all_workers() -> None:
    create_endpoint(in_flight_limit=2)
    for number in range(5):
        publish_event(number)
    deliveries = claim_deliveries(10)
    assert (len(deliveries), len(claim_deliveries(10))) == (2, 0)
    record(build_result(deliveries[0]))
    assert len(claim_deliveries(10)) == 1
    # A lease that has ended counts no more.
    end_leases()
    assert len(claim_deliveries(10)) == 2


def claim_in_another_connection() -> list[LeasedDelivery]:
    """Claims as another worker does. Raises OperationalError where it would wait."""

    def claim() -> list[LeasedDelivery]:
        try:
            execute("SET lock_timeout = '5s'")
            return claim_deliveries(10)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(claim).result()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time.")
def test_workers_that_claim_at_the_same_time_keep_the_limit_together(transactional_db: None) -> None:
    create_endpoint(in_flight_limit=2)
    for number in range(5):
        publish_event(number)
    with transaction.atomic():
        first = claim_deliveries(10)
        during_the_claim = claim_in_another_connection()
    assert (len(first), during_the_claim, claim_in_another_connection()) == (2, [], [])
    record(build_result(first[0]))
    assert len(claim_in_another_connection()) == 1


def test_nothing_is_claimed_for_an_endpoint_while_it_is_inactive_or_has_no_owner() -> None:
    other, endpoint = create_endpoint(create_owner("other")), create_delivery()
    valid = {"state": "active", "owner": endpoint.owner}
    for change in ({"state": "disabled"}, {"state": "deleted"}, {"owner": None}):
        Endpoint.objects.filter(pk=endpoint.pk).update(**{**valid, **change})
        assert [leased.endpoint_id for leased in claim_deliveries(10)] == [other.pk], change
        end_leases()
    Endpoint.objects.filter(pk=endpoint.pk).update(**valid)
    assert {leased.endpoint_id for leased in claim_deliveries(10)} == {other.pk, endpoint.pk}


def test_any_status_but_2xx_is_tried_again() -> None:
    create_delivery()
    for status in (199, 300, 404, None):
        Delivery.objects.update(attempted=0, next_at=MOMENT)
        record(build_result(claim_deliveries(1)[0], status))
        assert Delivery.objects.values_list("state", "attempted", "lease").get() == ("waiting", 1, None), status
        assert 8 < get_seconds_until_due() < 12


def test_each_attempt_waits_longer_and_the_fifth_is_the_last_or_one_to_a_refused_address() -> None:
    create_delivery()
    for attempted, (chance, seconds) in enumerate(((0.0, 8), (0.5, 60), (1.0, 720), (0.5, 3600))):
        Delivery.objects.update(attempted=attempted, lease=None, next_at=MOMENT)
        record(build_result(claim_deliveries(1)[0], 500), chance=chance)
        assert get_seconds_until_due() == pytest.approx(seconds, abs=2), attempted
    refused: dict[str, Any] = {"status": None, "error": "The address is not a public one.", "is_permanent": True}
    for attempted, fields in ((4, {"status": 500}), (0, refused)):
        Delivery.objects.update(attempted=attempted, state="waiting", next_at=MOMENT)
        record(build_result(claim_deliveries(1)[0], **fields))
        row = Delivery.objects.values_list("state", "attempted", "lease", "next_at").get()
        assert row == ("dead", attempted + 1, None, None)


def test_what_failed_alike_is_recorded_at_once_and_each_as_its_receiver_asks(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    create_endpoint()
    for number in range(20):
        publish_event(number)
    Delivery.objects.filter(pk__in=Delivery.objects.values("pk")[:5]).update(attempted=1)
    deliveries = claim_deliveries(20)
    patient_pk = deliveries[0].pk
    results = [build_result(each, 503, retry_after=1_800 if each.pk == patient_pk else None) for each in deliveries]
    with django_assert_max_num_queries(10):
        record(*results)
    rows = Delivery.objects.values_list("pk", "attempted", "next_at", "lease")
    waits = [
        (pk, attempted, round((due - timezone.now()).total_seconds(), -1)) for pk, attempted, due, _ in rows if due
    ]
    assert len(waits) == 20
    assert {lease for *_, lease in rows} == {None}
    others = Counter((attempted, seconds) for pk, attempted, seconds in waits if pk != patient_pk)
    assert others in (Counter({(1, 10): 15, (2, 60): 4}), Counter({(1, 10): 14, (2, 60): 5}))
    assert [seconds for pk, _, seconds in waits if pk == patient_pk] == [1_800]


def test_a_receiver_may_ask_for_time_up_to_an_hour() -> None:
    create_delivery()
    for retry_after, expected in ((-100, 10), (120, 120), (10**9, 3600), (None, 10)):
        Delivery.objects.update(attempted=0, next_at=MOMENT)
        record(build_result(claim_deliveries(1)[0], 503, retry_after=retry_after))
        assert get_seconds_until_due() == pytest.approx(expected, abs=2), retry_after


def test_a_delivery_that_kills_workers_is_poisoned_in_the_end() -> None:
    create_delivery()
    flags = []
    for _ in range(MAX_LOST_WORKERS + 1):
        flags += [leased.is_poisoned for leased in claim_deliveries(1)]
        end_leases()
    assert flags == [False] * MAX_LOST_WORKERS + [True]


def test_ten_dead_deliveries_in_a_row_disable_an_endpoint() -> None:
    """A successful one resets their count, and those of its batch do not count."""
    failing_endpoint = create_endpoint(dead_in_a_row=9)
    for number in range(4):
        publish_event(number)
    Delivery.objects.update(attempted=4)
    successful, first, *others = claim_deliveries(10)
    assert record(build_result(successful), build_result(first, 500)) == []
    failing_endpoint.refresh_from_db()
    assert (failing_endpoint.state, failing_endpoint.dead_in_a_row) == ("active", 0)
    Endpoint.objects.update(dead_in_a_row=8)
    assert record(build_result(others[0], 500)) == []
    [endpoint] = record(build_result(others[1], 500))
    assert (endpoint, endpoint.reason) == (failing_endpoint, attempts.DISABLED_REASON)
    failing_endpoint.refresh_from_db()
    assert (failing_endpoint.state, failing_endpoint.reason) == ("disabled", "10 deliveries in a row failed for good.")
    publish_event(11)
    assert Delivery.objects.count() == 4


def test_the_failure_of_a_late_worker_does_not_count_against_the_endpoint() -> None:
    endpoint = create_endpoint(dead_in_a_row=attempts.MAX_DEAD_IN_A_ROW - 1)
    publish_event()
    Delivery.objects.update(attempted=4)
    [late] = claim_deliveries(1)
    end_leases()
    [leased] = claim_deliveries(1)
    assert record(build_result(late, 500)) == []
    endpoint.refresh_from_db()
    assert (endpoint.state, endpoint.dead_in_a_row) == ("active", attempts.MAX_DEAD_IN_A_ROW - 1)
    assert Delivery.objects.values_list("state", "attempted", "lease").get() == ("waiting", 4, leased.lease)
    assert record(build_result(leased, 500)) == [endpoint]


@pytest.mark.parametrize("form", ["B", "C"])
def test_a_pending_secret_signs_in_form_c_alone_before_it_is_promoted(form: str) -> None:
    endpoint = create_endpoint(form=form)
    next_secret = endpoints.add_endpoint_secret(endpoint, None, timezone.now())
    publish_event()
    [leased] = claim_deliveries(1)
    assert leased.secrets == ((SECRET, next_secret) if form == "C" else (SECRET,))
    end_leases()
    pending = endpoint.secrets.get(state="pending")
    # One that cannot sign is skipped.
    for sealed in ("nonsense", encrypt_secret(OLD_SECRET)):
        endpoint.secrets.filter(pk=pending.pk).update(sealed=sealed)
        assert [leased.secrets for leased in claim_deliveries(1)] == [(SECRET,)]
        end_leases()
    endpoint.secrets.filter(pk=pending.pk).update(sealed=pending.sealed)
    endpoints.promote_secret(endpoint)
    assert [leased.secrets for leased in claim_deliveries(1)] == [(next_secret,)]


@pytest.mark.parametrize(("form", "sealed"), [("C", encrypt_secret(OLD_SECRET)), ("B", "nonsense")])
def test_an_endpoint_whose_secret_cannot_sign_is_disabled(form: str, sealed: str) -> None:
    """It cannot be decrypted, or a process of the last release added one while this release was installed."""
    endpoint = create_endpoint(form=form)
    endpoint.secrets.update(sealed=sealed)
    publish_event()
    assert leases.claim_deliveries(1, {}) == ([], [endpoint])
    endpoint.refresh_from_db()
    assert (endpoint.state, endpoint.reason) == ("disabled", endpoints.UNREADABLE_SECRET)
    endpoints.add_endpoint_secret(endpoint, SECRET, timezone.now())
    endpoints.promote_secret(endpoint)
    assert [leased.secrets for leased in claim_deliveries(1)] == [(SECRET,)]


def test_a_slow_endpoint_leaves_room_for_others() -> None:
    owner = create_owner()
    slow_endpoint, other_endpoint = (
        create_endpoint(owner, in_flight_limit=1000),
        create_endpoint(owner, kinds="book.deleted"),
    )
    for number in range(20):
        publish_event(number)
    in_flight: Counter[int] = Counter()
    while deliveries := leases.claim_deliveries(12, in_flight).deliveries:
        in_flight.update(leased.endpoint_id for leased in deliveries)
    assert in_flight == {slow_endpoint.pk: 6}
    Delivery.objects.filter(lease=None).update(endpoint=other_endpoint)
    assert {leased.endpoint_id for leased in leases.claim_deliveries(12, in_flight).deliveries} == {other_endpoint.pk}


def test_nothing_is_sent_to_an_owner_who_may_no_longer_have_endpoints() -> None:
    endpoint = create_delivery()
    endpoint.owner.user_permissions.clear()  # type: ignore[union-attr]  # the endpoint has an owner
    assert claim_deliveries(1) == []


def test_a_claim_takes_the_same_number_of_queries_for_any_number_of_endpoints(django_assert_num_queries: Any) -> None:
    owner = create_owner()
    create_endpoint(owner)
    publish_event()
    with django_assert_num_queries(6 + count_transaction_queries()):
        claim_deliveries(100)
    for _ in range(5):
        create_endpoint(owner)
    publish_event()
    Delivery.objects.update(next_at=F("created_at"), lease=None)
    with django_assert_num_queries(6 + count_transaction_queries()):
        claim_deliveries(100)


def count_transaction_queries() -> int:
    """The savepoint inside the test's own transaction takes two."""
    return 2 if connection.in_atomic_block else 0
