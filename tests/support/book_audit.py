"""A second book-keeping of what happens to books, by the test database itself, to hold events against.

Only here: in production the library's own writers announce what they do.
"""

from collections import Counter

from django.db import connection

KINDS = {"INSERT": "book.created", "UPDATE": "book.updated", "DELETE": "book.deleted"}
TABLE = "CREATE TABLE ledger (id {serial}, kind varchar(20) NOT NULL, book bigint NOT NULL)"
ON_SQLITE = """
CREATE TRIGGER ledger_{action} AFTER {action} ON books_book
BEGIN INSERT INTO ledger (kind, book) VALUES ('{kind}', {row}.id); END
"""
ON_POSTGRESQL = """
CREATE FUNCTION ledger_{action}() RETURNS trigger AS $$
BEGIN INSERT INTO ledger (kind, book) VALUES ('{kind}', {row}.id); RETURN NULL; END
$$ LANGUAGE plpgsql;
CREATE TRIGGER ledger_{action} AFTER {action} ON books_book FOR EACH ROW EXECUTE FUNCTION ledger_{action}()
"""


def keep() -> None:
    """From now on, in the database that is connected."""
    sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        cursor.execute(TABLE.format(serial="integer PRIMARY KEY" if sqlite else "bigserial PRIMARY KEY"))
        for action, kind in KINDS.items():
            row = "OLD" if action == "DELETE" else "NEW"
            cursor.execute((ON_SQLITE if sqlite else ON_POSTGRESQL).format(action=action, kind=kind, row=row))


def forget() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM ledger")


def done() -> Counter[tuple[str, int]]:
    """How often each thing happened to each book."""
    return counted("SELECT kind, book FROM ledger")


def announced() -> Counter[tuple[str, int]]:
    return counted("SELECT kind, subject FROM webhooks_event WHERE subject IS NOT NULL")


def counted(statement: str) -> Counter[tuple[str, int]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return Counter(cursor.fetchall())
