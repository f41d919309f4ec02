"""PostgreSQL's errors are logged without the rows that they quote."""

import logging
from collections.abc import Callable
from functools import partial

import pytest
from django.db import DatabaseError, connection, transaction

from library_site.db.sql import execute
from library_site.monitoring.log_formatters import JSONFormatter, TextFormatter

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite quotes no rows."),
    pytest.mark.django_db,
]

SECRET = "open-sesame"
CREATE_SQL = "CREATE TEMPORARY TABLE shelf (isbn text UNIQUE, year integer CHECK (year > 0)) ON COMMIT DROP"


STATEMENTS = [
    partial(execute, "INSERT INTO shelf VALUES (%s, 1), (%s, 1)", [SECRET, SECRET]),
    partial(execute, "INSERT INTO shelf VALUES (%s, 0)", [f"{SECRET}\n  | {SECRET}"]),
    partial(execute, "INSERT INTO shelf (isbn, yaer) VALUES (%s, 1)", [SECRET]),
    partial(execute, "SELECT %s, lowercase(1)", [SECRET]),
]


def violate_check_by_copy() -> None:
    with connection.cursor() as cursor, cursor.copy("COPY shelf FROM STDIN") as copy:
        copy.write_row((SECRET, 0))


def raise_plainly(error: Exception) -> None:
    raise error


def raise_from_cause(error: Exception) -> None:
    raise ValueError("The shelf is full.") from error


def raise_in_context(error: Exception) -> None:
    try:
        raise error
    except DatabaseError:
        raise ValueError("The shelf is full.")  # noqa: B904  # its context is what is tested


def raise_in_group(error: Exception) -> None:
    raise ExceptionGroup("Two shelves failed.", [ValueError(), ExceptionGroup("One of them twice.", [error])])


def catch(raise_error: Callable[[], object]) -> Exception:
    try:
        with transaction.atomic():
            raise_error()
    except Exception as error:
        return error
    raise AssertionError


FAILURES: list[Callable[[], object]] = [*STATEMENTS, violate_check_by_copy]
WRAPPERS = [raise_plainly, raise_from_cause, raise_in_context, raise_in_group]


def test_no_error_of_the_database_logs_a_row() -> None:
    execute(CREATE_SQL)
    for fail, wrap in [*((fail, raise_plainly) for fail in FAILURES), *((FAILURES[1], wrap) for wrap in WRAPPERS)]:
        error = catch(fail)
        assert SECRET in str(error)
        wrapped = catch(partial(wrap, error))
        record = logging.LogRecord(
            "books", logging.ERROR, "", 1, "It failed: %s", (error,), (type(wrapped), wrapped, wrapped.__traceback__)
        )
        for formatter in (TextFormatter(), JSONFormatter()):
            line = formatter.format(record)
            assert SECRET not in line
            assert str(error).splitlines()[0] in line.replace('\\"', '"')
            assert "test_log_formatters.py" in line
