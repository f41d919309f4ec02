"""What cannot be answered now is 503 with Retry-After, at every address, and a few lines in the log of an outage."""

import logging
from typing import Any, NoReturn

import httpx
import pytest
from django.db import DatabaseError, InterfaceError, InternalError, OperationalError, connection
from django.db.backends.signals import connection_created
from psycopg import errors

from library_site.db.errors import DatabaseBusy
from library_site.db.hangs import DatabaseHangs
from library_site.db.outages import OutageLog, outage_log
from tests.support.books import build_book
from tests.support.failures import break_database

OUT_OF_REACH = "The library is out of reach, try again later"
BUSY = "The library is busy, try again later"
SESSION = {"Cookie": "sessionid=abcdefghijklmnopqrstuvwxyz012345"}
FORM: dict[str, Any] = {"data": {"client_id": "shop", "client_secret": "guess", "token": "x"}}
# The operations of version 2 are in test_every_operation.py.
REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/api/books", {}),
    ("GET", "/api/books?author=austen", {}),
    ("GET", "/api/books/1", {}),
    ("POST", "/api/books", {"json": build_book()}),
    ("PUT", "/api/books/1", {"json": build_book()}),
    ("DELETE", "/api/books/1", {}),
    ("POST", "/api/v2/books", {"json": build_book(), "headers": {"Idempotency-Key": "once"}}),
    ("POST", "/webhooks/receive/shop", {"json": {}}),
    ("POST", "/oauth/token", FORM),
    ("POST", "/oauth/refresh", FORM),
    ("POST", "/oauth/revoke", FORM),
    ("POST", "/oauth/introspect", FORM),
    ("GET", "/oauth/authorize?client_id=shop", {"headers": SESSION}),
    ("GET", "/accounts/login", {"headers": SESSION}),
    ("GET", "/accounts/apps", {"headers": SESSION}),
    ("GET", "/admin/", {"headers": SESSION}),
    ("GET", "/admin/books/book/", {"headers": SESSION}),
]


def chain(error: DatabaseError, cause: Exception) -> DatabaseError:
    """Returns Django's exception for one of the driver."""
    error.__cause__ = cause
    return error


FAILURES = {
    "no connection": (OperationalError("gone"), OUT_OF_REACH),
    "hangs": (chain(OperationalError(), DatabaseHangs()), OUT_OF_REACH),
    "closed": (InterfaceError("the connection is closed"), OUT_OF_REACH),
    "read-only": (chain(InternalError(), errors.ReadOnlySqlTransaction()), OUT_OF_REACH),
    "idle transaction": (chain(InternalError(), errors.IdleInTransactionSessionTimeout()), OUT_OF_REACH),
    "lock": (chain(OperationalError(), errors.LockNotAvailable()), BUSY),
    "slow": (chain(OperationalError(), errors.QueryCanceled()), BUSY),
    "writers": (DatabaseBusy(), BUSY),
}


def test_every_503_says_when_to_come_again(api: httpx.Client) -> None:
    cases = [(*request, *FAILURES["no connection"]) for request in REQUESTS]
    cases += [("GET", "/api/v2/books/1", {}, *failure) for failure in FAILURES.values()]
    for method, address, options, failure, message in cases:
        with break_database(failure):
            response = api.request(method, address, **options)
        assert (response.status_code, response.headers.get("Retry-After")) == (503, "1"), (method, address, failure)
        assert message in response.text


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_documents_name_retry_after(api: httpx.Client, version: str) -> None:
    paths = api.get(f"/openapi/{version}.json").json()["paths"]
    responses = [
        operation["responses"]["503"]
        for address, operations in paths.items()
        for operation in operations.values()
        if address.startswith("/api")
    ]
    assert [response["headers"].keys() for response in responses] == [{"Retry-After"}] * len(responses)
    assert len(responses) >= 5


@pytest.mark.parametrize("failure", ["lock", "writers"])
def test_a_read_that_timed_out_is_not_tried_again(api: httpx.Client, book: dict[str, Any], failure: str) -> None:
    statements = []

    def fail(execute: Any, sql: str, *arguments: Any) -> NoReturn:
        statements.append(sql)
        raise FAILURES[failure][0]

    with connection.execute_wrapper(fail):
        for count, path in enumerate(("/api/books", f"/api/books/{book['id']}", f"/api/v2/books/{book['id']}"), 1):
            assert api.get(path).status_code == 503
            assert len(statements) == count, path


def test_a_timeout_is_one_line_in_the_log(api: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with break_database(FAILURES["lock"][0]):
        api.get("/api/books")
    assert [record.getMessage() for record in caplog.records if record.name == "library_site.http.errors"] == [
        "The database is busy: LockNotAvailable"
    ]
    assert not any(record.exc_info for record in caplog.records)


def summarize(records: list[logging.LogRecord]) -> list[tuple[str, bool]]:
    """Returns the messages, and whether they have a traceback."""
    return [(record.getMessage(), bool(record.exc_info)) for record in records]


def test_an_outage_has_one_traceback_and_then_counts(caplog: pytest.LogCaptureFixture) -> None:
    outage = OutageLog()
    for second in range(25):
        outage.record(FAILURES["no connection"][0], second)
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
        outage.record(FAILURES["no connection"][0], second)
        outage.end()
    # After a minute without failures an outage is a new one, also if the last one had no end.
    for second in (200, 261):
        outage.record(FAILURES["no connection"][0], second)
    failures = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [bool(record.exc_info) for record in failures] == [True, False, False, True, True, True]


def test_a_new_connection_to_a_read_only_database_is_no_end(caplog: pytest.LogCaptureFixture) -> None:
    """Each write that such a database refuses opens one."""
    outage, (refusal, _) = OutageLog(), FAILURES["read-only"]
    for second in range(12):
        outage.record(refusal, second)
        outage.end()
    assert summarize(caplog.records) == [
        ("The database did not answer: InternalError", True),
        ("The database does not answer: 12 requests failed.", False),
    ]


def test_requests_of_an_outage_add_no_lines(api: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    outage_log.__init__()  # type: ignore[misc]  # forgets the outages of other tests
    with break_database(FAILURES["no connection"][0]):
        assert [api.get(f"/api/v2/books/{number}").status_code for number in range(20)] == [503] * 20
    connection_created.send(type(connection), connection=connection)
    assert summarize([record for record in caplog.records if record.name != "library_site.access"]) == [
        ("The database did not answer: OperationalError", True),
        ("The database answers again: 20 requests failed.", False),
    ]
