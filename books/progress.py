"""How long work at the command line still takes."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Item = TypeVar("Item")


def batches(items: Iterable[Item], size: int, what: str, total: int | None = None) -> Iterator[list[Item]]:
    """The items in lists of `size`, one bar on standard error moving as each is worked off."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    remaining = iter(items)
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        while batch := list(islice(remaining, size)):
            yield batch
            bar.advance(task, len(batch))
