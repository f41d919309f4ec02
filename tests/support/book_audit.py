"""Triggers of the test database that record every change of a book, so that tests can compare events and history.

Only tests have them: in production the code that changes a book also announces and records the change.
"""

import json
from collections import Counter, defaultdict
from typing import Any

from django.db import connection

from books.book.fields import FIELDS
from books.models import Change
from library_site.db.sql import fetch_all

EVENT_KINDS = {"INSERT": "book.created", "UPDATE": "book.updated", "DELETE": "book.deleted"}
CREATE_LEDGER = """
CREATE TABLE ledger (id {serial}, kind varchar(20) NOT NULL, book bigint NOT NULL, old text NULL, new text NULL)
"""
SQLITE_TRIGGER = """
CREATE TRIGGER ledger_{action} AFTER {action} ON books_book
BEGIN INSERT INTO ledger (kind, book, old, new) VALUES ('{kind}', {row}.id, {old}, {new}); END
"""
POSTGRESQL_TRIGGER = """
CREATE FUNCTION ledger_{action}() RETURNS trigger AS $$
BEGIN INSERT INTO ledger (kind, book, old, new) VALUES ('{kind}', {row}.id, {old}, {new}); RETURN NULL; END
$$ LANGUAGE plpgsql;
CREATE TRIGGER ledger_{action} AFTER {action} ON books_book FOR EACH ROW EXECUTE FUNCTION ledger_{action}()
"""
UNTOUCHED_SQL = (
    "SELECT (SELECT count(*) FROM ledger) + (SELECT count(*) FROM books_change)"
    " + (SELECT count(*) FROM webhooks_event WHERE subject IS NOT NULL AND kind LIKE 'book.%%')"
)
HISTORY_SQL = """
SELECT book_id, version, kind, CAST(before AS text), CAST(after AS text) FROM books_change ORDER BY id
"""
RECORDED_COLUMNS = (*FIELDS, "version")


def install_triggers() -> None:
    """Creates the ledger and its triggers in the connected database."""
    sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        cursor.execute(CREATE_LEDGER.format(serial="integer PRIMARY KEY" if sqlite else "bigserial PRIMARY KEY"))
        for action, kind in EVENT_KINDS.items():
            row = "OLD" if action == "DELETE" else "NEW"
            old, new = (
                "NULL" if action == unknown else build_json_sql(row_name, sqlite=sqlite)
                for unknown, row_name in (("INSERT", "OLD"), ("DELETE", "NEW"))
            )
            trigger = SQLITE_TRIGGER if sqlite else POSTGRESQL_TRIGGER
            cursor.execute(trigger.format(action=action, kind=kind, row=row, old=old, new=new))


def build_json_sql(row: str, *, sqlite: bool) -> str:
    arguments = ", ".join(f"'{name}', {row}.{name}" for name in RECORDED_COLUMNS)
    return f"json_object({arguments})" if sqlite else f"json_build_object({arguments})"


def clear_ledger() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM ledger")


def is_untouched() -> bool:
    """Whether no book was changed, by one statement for the many tests of which that is true."""
    return fetch_all(UNTOUCHED_SQL) == [(0,)]


def count_changes() -> Counter[tuple[str, int]]:
    """Returns how many changes of each kind each book had."""
    return Counter(fetch_all("SELECT kind, book FROM ledger"))


def count_events() -> Counter[tuple[str, int]]:
    """Returns how many events of each kind were stored for each book."""
    return Counter(
        fetch_all("SELECT kind, subject FROM webhooks_event WHERE subject IS NOT NULL AND kind LIKE 'book.%%'")
    )


def list_changes() -> dict[int, list[Any]]:
    """Returns the version, the kind and the fields before and after of each change, by book, as history has them."""
    changes: dict[int, list[Any]] = defaultdict(list)
    for book, *states in fetch_all("SELECT book, old, new FROM ledger ORDER BY id"):
        changes[book].append(describe_change(*(json.loads(state) if state else None for state in states)))
    return changes


def describe_change(old: dict[str, Any] | None, new: dict[str, Any] | None) -> tuple[Any, ...]:
    if new is None:
        assert old is not None
        return old["version"] + 1, Change.Kind.DELETED, normalize(old, FIELDS), None
    if old is None:
        kind = Change.Kind.CREATED if new["version"] == 1 else Change.Kind.RESTORED
        return new["version"], kind, None, None
    names = [name for name in FIELDS if old[name] != new[name]]
    return new["version"], Change.Kind.CHANGED, normalize(old, names), normalize(new, names)


def normalize(state: dict[str, Any], names: Any) -> dict[str, Any]:
    """SQLite has no booleans."""
    return {name: bool(state[name]) if name == "available" else state[name] for name in names}


def list_history() -> dict[int, list[Any]]:
    """Returns what `list_changes` returns, as the history has it."""
    history: dict[int, list[Any]] = defaultdict(list)
    for book, version, kind, *texts in fetch_all(HISTORY_SQL):
        before, after = (json.loads(text) if text else None for text in texts)
        if before:
            before.pop("created_at", None)
        # The database sees a merge as a deletion.
        if kind == Change.Kind.MERGED:
            kind, after = Change.Kind.DELETED, None
        history[book].append((version, kind, before, after))
    return history
