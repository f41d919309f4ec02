"""Errors of a database that answers: its time limits, conflicts between transactions, and that it is read-only."""

from types import TracebackType

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import DatabaseErrorWrapper
from psycopg import errors

# PostgreSQL aborted this transaction because of another one: a deadlock, or a conflict under a stricter isolation
# level than its default.
CONFLICT_SQLSTATES = {"40P01", "40001"}


class DatabaseBusy(OperationalError):
    """On SQLite, too many writers are waiting, or this writer did not get its turn in time."""


def is_timeout(error: BaseException) -> bool:
    """Tells whether a lock was not free in time or a statement took too long. A retry can succeed."""
    cause = error.__cause__
    return (
        isinstance(error, DatabaseBusy)
        or isinstance(cause, errors.LockNotAvailable | errors.QueryCanceled)
        or getattr(cause, "sqlite_errorname", "") in ("SQLITE_BUSY", "SQLITE_INTERRUPT")
    )


def is_conflict(error: BaseException) -> bool:
    """Tells whether PostgreSQL aborted a transaction because of another one."""
    return getattr(error.__cause__, "sqlstate", None) in CONFLICT_SQLSTATES


class ClosingErrorWrapper(DatabaseErrorWrapper):
    """Closes a connection whose database is read-only: the next one may lead to a database that is not. A session of
    PostgreSQL keeps its server and its `default_transaction_read_only`, and SQLite keeps the files as it has opened
    them. Every statement runs in it, whether Django sends it or a PreparedStatement does.
    """

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
    return isinstance(error, errors.ReadOnlySqlTransaction) or sqlite_name.startswith("SQLITE_READONLY")
