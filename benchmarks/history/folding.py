"""Folds the history of each book, and compares it with the books and with what clients were told.

It is written from the meaning of the tables alone, without the library's own code.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.deliveries import Library
from benchmarks.history.mixed_clients import Acknowledged

MEMBERS = ("title", "author", "year", "isbn", "genre", "available")
CREATED, CHANGED, DELETED, RESTORED = 1, 2, 3, 4
NAMES = {CREATED: "created", CHANGED: "changed", DELETED: "deleted", RESTORED: "restored"}
EVENTS = {CREATED: "book.created", CHANGED: "book.updated", DELETED: "book.deleted", RESTORED: "book.created"}
CHANGES_SQL = """
    SELECT book_id, version, kind, before, after, channel FROM books_change AS change
    LEFT JOIN books_actor AS actor ON actor.id = actor_id ORDER BY book_id, version
"""
BOOKS_SQL = f"SELECT id, version, {', '.join(MEMBERS)} FROM books_book"
EVENTS_SQL = "SELECT kind, count(*) FROM webhooks_event GROUP BY kind"

State = Mapping[str, Any] | None
"""The members of a book; None while it is deleted."""


class BrokenHistory(Exception):
    """The history of a book does not fit itself, or its book."""


class StoredChange(NamedTuple):
    version: int
    kind: int
    before: Any
    after: Any
    channel: str


class Histories(NamedTuple):
    """The changes of each book, its states by version, and what is wrong with the others."""

    changes: Mapping[int, Sequence[StoredChange]]
    states: Mapping[int, Mapping[int, State]]
    problems: Sequence[str]

    def count_channels(self) -> Counter[str]:
        return Counter(change.channel for changes in self.changes.values() for change in changes)

    def count_kinds(self) -> Counter[str]:
        return Counter(NAMES[change.kind] for changes in self.changes.values() for change in changes)

    def count_states(self) -> int:
        return sum(len(states) for states in self.states.values())


def read_histories(library: Library, first_book: int) -> Histories:
    """Reads the histories of the books from this id on; older books have no creation."""
    changes, states, problems = defaultdict(list), {}, []
    for pk, version, kind, before, after, channel in library.execute_sql(CHANGES_SQL):
        changes[pk].append(StoredChange(version, kind, parse_members(before), parse_members(after), channel))
    books = {pk: (version, parse_book(values)) for pk, version, *values in library.execute_sql(BOOKS_SQL)}
    for pk in {*changes, *books}:
        if pk >= first_book:
            try:
                states[pk] = fold(changes[pk], *books.get(pk, (None, None)))
            except BrokenHistory as error:
                problems.append(f"book {pk}: {error}")
    return Histories(changes, states, problems)


def parse_members(value: Any) -> Any:
    """SQLite has JSON as text."""
    return json.loads(value) if isinstance(value, str) else value


def parse_book(values: Sequence[Any]) -> dict[str, Any]:
    book = dict(zip(MEMBERS, values, strict=True))
    return {**book, "available": bool(book["available"])}


def fold(changes: Sequence[StoredChange], version: int | None, book: State) -> dict[int, State]:
    """Returns the states by version: those from the present book backwards, if the changes lead to it again.

    `book` is None if there is none any more. Raises BrokenHistory.
    """
    require([change.version for change in changes] == list(range(1, len(changes) + 1)), "a version is missing")
    require(bool(changes) and changes[0].kind == CREATED, "it has no creation")
    require(version in (None, len(changes)), f"the book has version {version}, the last change {len(changes)}")
    states: dict[int, State] = {}
    state = book
    for change in reversed(changes):
        states[change.version] = state
        state = undo(change, state)
    require(state is None, "there is a book before its creation")
    require_same_books(changes, states)
    return states


def require_same_books(changes: Sequence[StoredChange], states: Mapping[int, State]) -> None:
    """A book comes back as it was deleted; a mirrored one as its library restored it. Raises BrokenHistory."""
    for change in changes:
        if change.kind == RESTORED and change.channel != "mirror":
            before = states.get(change.version - 2)
            require(states[change.version] == before, f"{change.version} restores another book than {before}")


def undo(change: StoredChange, state: State) -> State:
    """Returns the state before the change. Raises BrokenHistory."""
    if change.kind == DELETED:
        require(state is None, f"after the deletion {change.version} there is a book")
        return {name: change.before[name] for name in MEMBERS}
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


def find_problems(histories: Histories, acknowledged: Iterable[Acknowledged], library: Library) -> list[str]:
    """Lists broken histories, acknowledged states that they do not have, and changes without an event."""
    events = Counter(dict(library.execute_sql(EVENTS_SQL)))
    announced = Counter(
        EVENTS[change.kind]
        for changes in histories.changes.values()
        for change in changes
        if change.channel != "mirror"
    )
    wrong_events = [
        f"{name}: {events[name]} events" for name in {*events, *announced} if events[name] != announced[name]
    ]
    return [*histories.problems, *find_missing(histories, acknowledged), *wrong_events]


def find_missing(histories: Histories, acknowledged: Iterable[Acknowledged]) -> list[str]:
    books = {state["isbn"]: pk for pk, states in histories.states.items() for state in states.values() if state}
    deletions = Counter(item.book for item in acknowledged if item.members is None and isinstance(item.book, int))
    missing = [str(item) for item in acknowledged if not has_state(histories.states, books, item)]
    few = [
        f"book {pk} was deleted {number} times"
        for pk, number in deletions.items()
        if count_deletions(histories, pk) < number
    ]
    return [*missing, *few]


def count_deletions(histories: Histories, pk: int | str) -> int:
    return sum(change.kind == DELETED for change in histories.changes.get(int(pk), ()))


def has_state(states: Mapping[int, Mapping[int, State]], books: Mapping[str, int], item: Acknowledged) -> bool:
    """Whether a book has this state at its version; without a version, whether it has it at any, or at its end."""
    if isinstance(item.book, str) and item.version is None:
        return is_last(states.get(books.get(item.book, 0), {}), item.members)
    book_states = states.get(books.get(item.book, 0) if isinstance(item.book, str) else item.book, {})
    records = book_states.values() if item.version is None else [book_states.get(item.version)]
    return any(matches(state, item.members) for state in records)


def is_last(states: Mapping[int, State], members: State) -> bool:
    """A mirrored book can be deleted before an event says that it exists: then there is no history."""
    return matches(states[max(states)], members) if states else members is None


def matches(state: State, members: State) -> bool:
    if state is None or members is None:
        return state is members
    return all(state[name] == value for name, value in members.items())
