"""Which backups are kept."""

from datetime import UTC, datetime, timedelta

from library_site.deployment.backups import Retention, choose_kept


def test_the_newest_of_each_period_is_kept() -> None:
    days = [datetime(2026, 11, 23, 2, tzinfo=UTC) - timedelta(days=number) for number in range(400)]
    moments = [*days, days[0] + timedelta(hours=9)]
    kept = choose_kept(moments, Retention(3, 2, 3))
    assert sorted(f"{moment:%m-%d %H}" for moment in kept) == [
        "09-30 02",
        "10-31 02",
        "11-21 02",
        "11-22 02",
        "11-23 11",
    ]
    assert choose_kept(moments, Retention(0, 0, 0)) == {moments[-1]}
    assert choose_kept([], Retention(0, 0, 0)) == set()
