"""When the queue repeats a failed attempt, and which attempt is the last."""

from datetime import timedelta

from library_site.jobs.retries import EVENT_RETRIES


def test_each_of_five_attempts_waits_longer_and_is_spread_by_a_fifth() -> None:
    delays = [timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1)]
    for attempt, delay in enumerate(delays, start=1):
        assert [EVENT_RETRIES.get_delay(attempt, chance) for chance in (0.5, 0, 1)] == [delay, delay * 0.8, delay * 1.2]
    assert [EVENT_RETRIES.is_last(attempt) for attempt in (1, 4, 5, 6)] == [False, False, True, True]
