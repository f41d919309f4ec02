"""When the queue repeats a failed attempt, and which attempt is the last."""

from datetime import timedelta

import pytest

from library_site.jobs.retries import EVENT_RETRIES, RetrySchedule


@pytest.mark.parametrize(
    ("attempt", "delay"),
    [(1, timedelta(seconds=10)), (2, timedelta(minutes=1)), (3, timedelta(minutes=10)), (4, timedelta(hours=1))],
)
def test_each_wait_is_longer_and_spread_by_a_fifth(attempt: int, delay: timedelta) -> None:
    assert EVENT_RETRIES.get_delay(attempt, 0.5) == delay
    assert EVENT_RETRIES.get_delay(attempt, 0) == delay * 0.8
    assert EVENT_RETRIES.get_delay(attempt, 1) == delay * 1.2


@pytest.mark.parametrize(("attempt", "last"), [(1, False), (4, False), (5, True), (6, True)])
def test_the_fifth_attempt_is_the_last(attempt: int, last: bool) -> None:
    assert EVENT_RETRIES.is_last(attempt) == last


def test_a_wait_without_jitter_is_always_the_same() -> None:
    assert {RetrySchedule((60, 300)).get_delay(2, chance) for chance in (0, 0.3, 1)} == {timedelta(minutes=5)}
