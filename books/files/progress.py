"""Shows the progress of a command as a bar on standard error."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Item = TypeVar("Item")


def show_progress_bar(
    lists: Iterable[Sequence[Item]], description: str, total: int | None = None
) -> Iterator[Sequence[Item]]:
    """Yields the same lists, and counts their items in the bar."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=total)
        for items in lists:
            yield items
            bar.advance(task, len(items))
