"""Recognizes errors of statements that the database cancelled, although it and the connection work."""

from django.db import OperationalError
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
