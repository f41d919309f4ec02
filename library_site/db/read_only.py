"""Closes a connection whose database is read-only: the next one may lead to a database that is not.

A session of PostgreSQL keeps its server and its `default_transaction_read_only`, and SQLite keeps the files as it has
opened them.
"""

from types import TracebackType

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import DatabaseErrorWrapper
from psycopg.errors import ReadOnlySqlTransaction


class ClosingErrorWrapper(DatabaseErrorWrapper):
    """Every statement runs in it, whether Django sends it or a PreparedStatement does."""

    def __init__(self, database: BaseDatabaseWrapper) -> None:
        super().__init__(database)
        self.database = database

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if is_read_only(exc_value):
            self.database.close()
        super().__exit__(exc_type, exc_value, traceback)


def is_read_only(error: BaseException | None) -> bool:
    """Tells whether the driver raised this error because the database is read-only."""
    sqlite_name: str = getattr(error, "sqlite_errorname", "")
    return isinstance(error, ReadOnlySqlTransaction) or sqlite_name.startswith("SQLITE_READONLY")
