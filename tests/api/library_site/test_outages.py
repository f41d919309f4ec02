"""An outage of the database is a few lines in the log, however many requests it fails."""

import logging

import httpx
import pytest
from django.db import InternalError, OperationalError, connection
from django.db.backends.signals import connection_created
from psycopg.errors import ReadOnlySqlTransaction

from library_site.db.outages import OutageLog, outage_log
from tests.support.failures import break_database

GONE = OperationalError("gone")


def summarize(records: list[logging.LogRecord]) -> list[tuple[str, bool]]:
    """Returns the messages, and whether they have a traceback."""
    return [(record.getMessage(), bool(record.exc_info)) for record in records]


def test_an_outage_has_one_traceback_and_then_counts(caplog: pytest.LogCaptureFixture) -> None:
    outage = OutageLog()
    for second in range(25):
        outage.record(GONE, second)
    outage.end()
    outage.end()
    assert summarize(caplog.records) == [
        ("The database did not answer: OperationalError", True),
        ("The database does not answer: 12 requests failed.", False),
        ("The database does not answer: 23 requests failed.", False),
        ("The database answers again: 25 requests failed.", False),
    ]


def test_outages_that_follow_each_other_share_the_traceback(caplog: pytest.LogCaptureFixture) -> None:
    outage = OutageLog()
    for second in (0, 20, 40, 100):
        outage.record(GONE, second)
        outage.end()
    # After a minute without failures an outage is a new one, also if the last one had no end.
    for second in (200, 261):
        outage.record(GONE, second)
    failures = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [bool(record.exc_info) for record in failures] == [True, False, False, True, True, True]


def test_a_new_connection_to_a_read_only_database_is_no_end(caplog: pytest.LogCaptureFixture) -> None:
    """Each write that such a database refuses opens one."""
    outage, refusal = OutageLog(), InternalError("read-only")
    refusal.__cause__ = ReadOnlySqlTransaction()
    for second in range(12):
        outage.record(refusal, second)
        outage.end()
    assert summarize(caplog.records) == [
        ("The database did not answer: InternalError", True),
        ("The database does not answer: 12 requests failed.", False),
    ]


def test_requests_of_an_outage_add_no_lines(api: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    outage_log.__init__()  # type: ignore[misc]  # forgets the outages of other tests
    with break_database(GONE):
        assert [api.get(f"/api/v2/books/{number}").status_code for number in range(20)] == [503] * 20
    connection_created.send(type(connection), connection=connection)
    assert summarize([record for record in caplog.records if record.name != "library_site.access"]) == [
        ("The database did not answer: OperationalError", True),
        ("The database answers again: 20 requests failed.", False),
    ]
