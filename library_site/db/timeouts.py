"""Recognizes statements that the database gave up, while it and the connection are in order."""

from django.db import OperationalError
from psycopg import errors

# PostgreSQL refused this transaction in favour of another: a deadlock, or a conflict under a stricter isolation level
# than its default.
CONFLICT_SQLSTATES = {"40P01", "40001"}


class WriterRefused(OperationalError):
    """On SQLite, too many writers wait already, or the turn of this one did not come in time."""


def is_timeout(error: BaseException) -> bool:
    """Whether a lock was not free in time or a statement took too long. The next statement may well succeed."""
    cause = error.__cause__
    return (
        isinstance(error, WriterRefused)
        or isinstance(cause, errors.LockNotAvailable | errors.QueryCanceled)
        or getattr(cause, "sqlite_errorname", "") in ("SQLITE_BUSY", "SQLITE_INTERRUPT")
    )


def is_conflict(error: BaseException) -> bool:
    """Whether PostgreSQL refused a transaction in favour of another."""
    return getattr(error.__cause__, "sqlstate", None) in CONFLICT_SQLSTATES
