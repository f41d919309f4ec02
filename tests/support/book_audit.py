"""Triggers of the test database that record every change of a book, so that tests can compare events with changes.

Only tests have them: in production the code that changes a book also announces the change.
"""

from collections import Counter

from django.db import connection

EVENT_KINDS = {"INSERT": "book.created", "UPDATE": "book.updated", "DELETE": "book.deleted"}
CREATE_LEDGER = "CREATE TABLE ledger (id {serial}, kind varchar(20) NOT NULL, book bigint NOT NULL)"
SQLITE_TRIGGER = """
CREATE TRIGGER ledger_{action} AFTER {action} ON books_book
BEGIN INSERT INTO ledger (kind, book) VALUES ('{kind}', {row}.id); END
"""
POSTGRESQL_TRIGGER = """
CREATE FUNCTION ledger_{action}() RETURNS trigger AS $$
BEGIN INSERT INTO ledger (kind, book) VALUES ('{kind}', {row}.id); RETURN NULL; END
$$ LANGUAGE plpgsql;
CREATE TRIGGER ledger_{action} AFTER {action} ON books_book FOR EACH ROW EXECUTE FUNCTION ledger_{action}()
"""


def install_triggers() -> None:
    """Creates the ledger and its triggers in the connected database."""
    sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        cursor.execute(CREATE_LEDGER.format(serial="integer PRIMARY KEY" if sqlite else "bigserial PRIMARY KEY"))
        for action, kind in EVENT_KINDS.items():
            row = "OLD" if action == "DELETE" else "NEW"
            cursor.execute((SQLITE_TRIGGER if sqlite else POSTGRESQL_TRIGGER).format(action=action, kind=kind, row=row))


def clear_ledger() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM ledger")


def count_changes() -> Counter[tuple[str, int]]:
    """Returns how many changes of each kind each book had."""
    return count_rows("SELECT kind, book FROM ledger")


def count_events() -> Counter[tuple[str, int]]:
    """Returns how many events of each kind were stored for each book."""
    return count_rows("SELECT kind, subject FROM webhooks_event WHERE subject IS NOT NULL")


def count_rows(statement: str) -> Counter[tuple[str, int]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return Counter(cursor.fetchall())
