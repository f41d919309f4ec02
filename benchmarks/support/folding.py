"""Folds the history of each book, and compares it with the books.

It is written from the meaning of the tables alone, without the library's own code.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

FIELDS = ("title", "author", "year", "isbn", "genre", "available")
CREATED, CHANGED, DELETED = 1, 2, 3
CHANGES_SQL = "SELECT book_id, version, kind, before, after FROM books_change ORDER BY book_id, version"
BOOKS_SQL = f"SELECT id, version, {', '.join(FIELDS)} FROM books_book"

State = Mapping[str, Any] | None
"""The members of a book; None while it is deleted."""


class BrokenHistory(Exception):
    """The history of a book does not fit itself, or its book."""


class StoredChange(NamedTuple):
    version: int
    kind: int
    before: Any
    after: Any


def list_broken_histories(fetch: Callable[[str], Sequence[tuple[Any, ...]]], seeded: int) -> list[str]:
    """What is wrong, for each book. Those with an id up to `seeded` have no creation."""
    changes, problems = defaultdict(list), []
    for pk, version, kind, before, after in fetch(CHANGES_SQL):
        changes[pk].append(StoredChange(version, kind, parse_fields(before), parse_fields(after)))
    books = {pk: (version, parse_book(values)) for pk, version, *values in fetch(BOOKS_SQL)}
    for pk in {*changes, *books}:
        try:
            version, book = books.get(pk, (None, None))
            fold(changes[pk], version, book, is_seeded=pk <= seeded)
        except BrokenHistory as error:
            problems.append(f"book {pk}: {error}")
    return problems


def parse_fields(value: Any) -> Any:
    """SQLite has JSON as text."""
    return json.loads(value) if isinstance(value, str) else value


def parse_book(values: Sequence[Any]) -> dict[str, Any]:
    book = dict(zip(FIELDS, values, strict=True))
    return {**book, "available": bool(book["available"])}


def fold(changes: Sequence[StoredChange], version: int | None, book: State, is_seeded: bool) -> None:
    """Undoes the changes from the present book backwards; `book` is None if there is none any more.

    Raises BrokenHistory where they do not lead to it.
    """
    first = 2 if is_seeded else 1
    last = first + len(changes) - 1
    require([change.version for change in changes] == list(range(first, last + 1)), "a version is missing")
    require(is_seeded or (bool(changes) and changes[0].kind == CREATED), "it has no creation")
    require(version in (None, last), f"the book has version {version}, the last change {last}")
    state = book
    for change in reversed(changes):
        state = undo(change, state)
    require(is_seeded or state is None, "there is a book before its creation")


def undo(change: StoredChange, state: State) -> State:
    """Returns the state before the change. Raises BrokenHistory."""
    if change.kind == DELETED:
        require(state is None, f"after the deletion {change.version} there is a book")
        return {name: change.before[name] for name in FIELDS}
    if state is None:
        raise BrokenHistory(f"after change {change.version} there is no book")
    if change.kind != CHANGED:
        return None
    require(change.after == {name: state[name] for name in change.after}, f"{change.version} leads to another state")
    require(change.before.keys() == change.after.keys(), f"{change.version} has other members before and after")
    require(all(change.before[name] != change.after[name] for name in change.after), f"{change.version} is none")
    return {**state, **change.before}


def require(condition: bool, problem: str) -> None:
    """Raises BrokenHistory."""
    if not condition:
        raise BrokenHistory(problem)
