"""Replays the events of a book of a served library: they must lead from one state to the next without a gap.

The library's own history of the book must have a row for each.
"""

import json
from itertools import pairwise
from typing import Any, NamedTuple

from books.writing.events import ALWAYS_CHANGED
from tests.support.server import Service


class History(NamedTuple):
    """The kinds of a book's events in their order, and the book after the last of them."""

    kinds: list[str]
    book: dict[str, Any]


def replay_events(service: Service, pk: int) -> History:
    """Checks the events of a book that was created with events, and returns its history."""
    statement = f"SELECT body FROM webhooks_event WHERE subject = {pk} ORDER BY id"  # noqa: S608  # an integer
    events = [json.loads(bytes(body)) for (body,) in service.fetch_all(statement)]
    for before, after in pairwise(events):
        check_step(after["event"], before["data"]["book"], **after["data"])
    kinds, book = [event["event"] for event in events], events[-1]["data"]["book"]
    assert (kinds[0], events[0]["data"]["book"]["version"]) == ("book.created", 1)
    # A deletion is a version of its own in the history.
    versions = service.fetch_all(f"SELECT version FROM books_change WHERE book_id = {pk} ORDER BY id")  # noqa: S608
    assert versions == [(version,) for version in range(1, len(events) + 1)]
    # Nothing follows a deletion.
    assert set(kinds[1:-1]) <= {"book.updated"}
    return History(kinds, book)


def check_step(kind: str, before: dict[str, Any], book: dict[str, Any], previous: dict[str, Any]) -> None:
    """Checks that an event begins in the state in which the event before it ended."""
    if kind == "book.deleted":
        assert book == before
        return
    assert book["version"] == before["version"] + 1
    assert previous
    assert drop_versions({**book, **previous}) == drop_versions(before)


def drop_versions(book: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in book.items() if name not in ALWAYS_CHANGED}
