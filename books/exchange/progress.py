"""Shows the progress of a command as a bar on standard error."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Item = TypeVar("Item")


def iter_batches(items: Iterable[Item], size: int, description: str, total: int | None = None) -> Iterator[list[Item]]:
    """Yields the items in lists of `size`. The bar moves when the caller asks for the next list."""
    iterator = iter(items)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=total)
        while batch := list(islice(iterator, size)):
            yield batch
            bar.advance(task, len(batch))


def show_progress(items: Iterable[Item], description: str) -> Iterator[Item]:
    """Yields the same items. The bar moves after every thousand."""
    return (item for batch in iter_batches(items, 1_000, description) for item in batch)
