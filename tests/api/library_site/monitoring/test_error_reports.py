"""Errors are reported to a service of Sentry's kind, without anything that a client sent."""

import gzip
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import sentry_sdk
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from library_site.db.errors import DatabaseBusy
from library_site.monitoring.error_reports import start_error_reports
from tests.support.books import build_book
from tests.support.failures import break_database
from tests.support.receivers import respond_with, start_receiver

SECRET = "open-sesame"
Reports = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def reports() -> Iterator[Reports]:
    """A function that returns the events that the service received."""

    def receive() -> list[dict[str, Any]]:
        sentry_sdk.flush(5)
        envelopes = [gzip.decompress(request.body).split(b"\n") for request in receiver.requests]
        return [json.loads(lines[2]) for lines in envelopes]

    with start_receiver(respond_with(200)) as receiver:
        start_error_reports(f"http://key@127.0.0.1:{receiver.server_port}/1", release="library-api@1.0.0")
        yield receive
        # Without a service again. Its integrations would wrap Django for all tests that follow.
        sentry_sdk.init(release="", default_integrations=False, auto_enabling_integrations=False)


def test_a_failure_is_reported_without_the_request(api: httpx.Client, reports: Reports) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE books_book ADD COLUMN cellar integer DEFAULT 0 CHECK (cellar > 0)")
    api.post(
        f"/api/books?code={SECRET}",
        json=build_book(title=SECRET),
        headers={"X-Request-ID": "the-failed-one", "User-Agent": SECRET, "Cookie": f"sessionid={SECRET}"},
    )
    [report] = reports()
    *_, exception = report["exception"]["values"]
    assert (exception["type"], report["logentry"]["message"]) == ("IntegrityError", "%s: %s")
    assert exception["stacktrace"]["frames"][-1]["filename"].endswith(".py")
    assert report["tags"] == {"request_id": "the-failed-one", "process": "command"}
    assert report["release"] == "library-api@1.0.0"
    assert not report.keys() & {"request", "user", "extra", "breadcrumbs", "contexts", "modules"}
    assert SECRET not in json.dumps(report)
    assert "value" not in exception


def test_lines_are_reported_without_their_values(reports: Reports) -> None:
    logging.getLogger("books").error("Book %s failed.", SECRET)
    logging.getLogger("asyncio").error(f"Task of {SECRET} failed.")  # noqa: G004  # as asyncio does
    logging.getLogger("books").warning("This is no error.")
    events = reports()
    assert [event["logentry"]["message"] for event in events] == ["Book %s failed.", "asyncio"]
    assert SECRET not in json.dumps(events)


def test_a_request_that_is_answered_503_is_no_report(api: httpx.Client, reports: Reports) -> None:
    with break_database(DatabaseBusy()):
        assert api.get("/api/books").status_code == 503
    assert reports() == []


def test_a_bad_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^SENTRY_DSN takes") as refusal:
        start_error_reports(f"https://{SECRET}", release="")
    assert SECRET not in str(refusal.value)
