"""How far work at the command line has come: one bar, on standard error."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Item = TypeVar("Item")


def iter_batches(items: Iterable[Item], size: int, what: str, total: int | None = None) -> Iterator[list[Item]]:
    """The items in lists of `size`; the bar moves as each is worked off."""
    remaining = iter(items)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        while batch := list(islice(remaining, size)):
            yield batch
            bar.advance(task, len(batch))


def show_progress(items: Iterable[Item], what: str) -> Iterator[Item]:
    """The same items; the bar moves by the thousand."""
    return (item for batch in iter_batches(items, 1_000, what) for item in batch)
