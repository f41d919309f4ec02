"""Which backups of a folder to keep: the newest one of each day, week and month, for the last of these."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

PREFIX, TIME_FORMAT = "library-", "%Y%m%dT%H%M%SZ"
NAME = re.compile(rf"{PREFIX}(\d{{8}}T\d{{6}}Z)(?:\..+)?")


class Retention(NamedTuple):
    """For how many days, weeks (ISO 8601) and months one backup is kept."""

    days: int
    weeks: int
    months: int


def name_backup(now: datetime) -> str:
    return f"{PREFIX}{now.astimezone(UTC):{TIME_FORMAT}}"


def delete_old(folder: Path, retention: Retention) -> list[str]:
    """Deletes all other backups, but no unrelated files. Returns the names of the deleted backups. Raises OSError."""
    files: dict[str, list[Path]] = {}
    for path in folder.iterdir():
        if match := NAME.fullmatch(path.name):
            files.setdefault(match[1], []).append(path)
    moments = {time: datetime.strptime(time, TIME_FORMAT).replace(tzinfo=UTC) for time in files}
    kept = choose_kept(moments.values(), retention)
    old = sorted(time for time, moment in moments.items() if moment not in kept)
    for path in (path for time in old for path in files[time]):
        path.unlink()
    return [f"{PREFIX}{time}" for time in old]


def choose_kept(moments: Iterable[datetime], retention: Retention) -> set[datetime]:
    """Always keeps the newest backup: it may be the only good one."""
    newest_first = sorted(moments, reverse=True)
    periods: list[tuple[int, Callable[[datetime], object]]] = [
        (retention.days, datetime.date),
        (retention.weeks, lambda moment: moment.isocalendar()[:2]),
        (retention.months, lambda moment: (moment.year, moment.month)),
    ]
    kept = set(newest_first[:1])
    for count, get_period in periods:
        # The newest backup of a period is assigned last.
        newest = {get_period(moment): moment for moment in reversed(newest_first)}
        kept.update(sorted(newest.values(), reverse=True)[:count])
    return kept
