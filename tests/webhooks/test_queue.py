"""When an attempt that failed is made again."""

from datetime import timedelta

import pytest

from webhooks.queue import get_retry_delay, is_last_attempt

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("attempted", "wait"),
    [(1, timedelta(seconds=10)), (2, timedelta(minutes=1)), (3, timedelta(minutes=10)), (4, timedelta(hours=1))],
)
def test_each_wait_is_longer_and_spread_by_a_fifth(attempted: int, wait: timedelta) -> None:
    assert get_retry_delay(attempted, 0.5) == wait
    assert get_retry_delay(attempted, 0) == wait * 0.8
    assert get_retry_delay(attempted, 1) == wait * 1.2


@pytest.mark.parametrize(("attempt", "last"), [(1, False), (4, False), (5, True), (6, True)])
def test_the_fifth_attempt_is_the_last(attempt: int, last: bool) -> None:
    assert is_last_attempt(attempt) == last
