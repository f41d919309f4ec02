"""/metrics: who may read them, and what they count."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError
from django.test.utils import override_settings
from prometheus_client.metrics_core import Metric
from psycopg import errors
from pytest_django import Settings

from library_site.http.request_log import active_requests
from library_site.monitoring import metrics, metrics_files
from tests.support.applications import open_client
from tests.support.books import build_book
from tests.support.failures import break_database
from tests.support.metrics import TOKEN, scrape, subtract
from tests.support.settings import read_settings

HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def client(api: httpx.Client) -> Iterator[httpx.Client]:
    """A client of a library with metrics."""
    metrics.get_source_run.cache_clear()
    with override_settings(METRICS_TOKEN=TOKEN), open_client() as client:
        yield client


def test_without_a_token_there_are_no_metrics(api: httpx.Client) -> None:
    assert api.get("/metrics", headers=HEADERS).status_code == 404


def test_only_the_token_opens_the_metrics(client: httpx.Client) -> None:
    for value in ("", "Bearer ", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x"):
        response = client.get("/metrics", headers={"Authorization": value} if value else {})
        assert (response.status_code, response.headers["WWW-Authenticate"], response.content) == (401, "Bearer", b"")


def test_every_request_is_counted_by_its_route(client: httpx.Client) -> None:
    """On the compiled path too, which answers the reads. Probes are not counted."""
    address = client.post("/api/v2/books", json=build_book()).headers["Location"]
    before = scrape(client.get)
    for version in ("/api", "/api/v2"):
        client.get(f"{version}/books/{address.rpartition('/')[2]}")
        client.get(f"{version}/books/0")
        client.get(f"{version}/books?limit=1")
    client.post("/api/v2/books", content=b"{")
    client.request("BREW", "/api/v2/books")
    for page in ("/", "/docs", "/static/admin/css/base.css", "/nowhere", "/admin/login/", "/livez"):
        client.get(page)
    count = "request_duration_seconds_count"
    assert subtract(scrape(client.get), before) == {
        (count, "GET", "book", "200", "1"): 1,
        (count, "GET", "book", "404", "1"): 1,
        (count, "GET", "books", "200", "1"): 1,
        (count, "GET", "book", "200", "2"): 1,
        (count, "GET", "book", "404", "2"): 1,
        (count, "GET", "books", "200", "2"): 1,
        (count, "POST", "books", "400", "2"): 1,
        (count, "other", "books", "405", "2"): 1,
        (count, "GET", "root", "200", ""): 1,
        (count, "GET", "docs", "200", ""): 1,
        (count, "GET", "static", "200", ""): 1,
        (count, "GET", "none", "404", ""): 1,
        (count, "GET", "admin/login/", "200", ""): 1,
    }


def test_failures_of_the_database_are_counted(client: httpx.Client) -> None:
    busy = OperationalError()
    busy.__cause__ = errors.LockNotAvailable()
    before = scrape(client.get)
    for failure in (OperationalError("gone"), busy):
        with break_database(failure):
            client.get("/api/v2/books/1")
    assert subtract(scrape(client.get), before) == {
        ("request_duration_seconds_count", "GET", "book", "503", "2"): 2,
        ("database_errors_total", "unavailable"): 1,
        ("database_errors_total", "busy"): 1,
    }


def test_a_scrape_has_the_state_of_the_library(client: httpx.Client, settings: Settings) -> None:
    samples = scrape(client.get)
    assert samples["threads",] == settings.WEB_CONCURRENCY * settings.WEB_THREADS
    assert samples["threads_busy",] == 0
    assert samples["check_up", "database"] == samples["check_up", "signing_key"] == 1
    assert {("deliveries_waiting",), ("deliveries_overdue_seconds",), ("deliveries_total", "sent")} <= samples.keys()
    assert ("redis_up",) not in samples


def test_a_request_is_busy_until_its_answer_is_complete(client: httpx.Client) -> None:
    with client.stream("GET", "/static/admin/css/base.css"):
        assert [request.path for request in active_requests.values()] == ["/static/admin/css/base.css"]
        assert scrape(client.get)["threads_busy",] == 1
    assert active_requests == {}


def fail_to_read() -> list[Metric]:
    raise ConnectionError("a secret address")


def read_late() -> list[Metric]:
    released.wait()
    return []


released = Event()


def test_a_source_that_fails_or_hangs_leaves_the_others(client: httpx.Client, settings: Settings) -> None:
    sources = [f"{__name__}.{source.__name__}" for source in (fail_to_read, read_late)]
    settings.METRIC_SOURCES = [*sources, *settings.METRIC_SOURCES]
    metrics.get_source_run(sources[1]).timeout = 0.01
    samples = scrape(client.get)
    released.set()
    assert ("deliveries_waiting",) in samples
    assert [samples["source_up", source] for source in (*sources, "webhooks.metrics.read_deliveries")] == [0, 0, 1]


def test_a_dead_process_has_no_busy_threads_and_keeps_its_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(metrics_files.DIRECTORY_VARIABLE, raising=False)
    counts = {tmp_path / f"{kind}_{pid}.db" for kind in ("counter", "gauge_livesum") for pid in (os.getpid(), 2**22)}
    for path in counts:
        path.touch()
    metrics_files.forget_dead_processes(tmp_path)
    assert counts - set(tmp_path.iterdir()) == {tmp_path / f"gauge_livesum_{2**22}.db"}
    metrics_files.prepare_directory(tmp_path)
    assert (list(tmp_path.iterdir()), os.environ[metrics_files.DIRECTORY_VARIABLE]) == ([], str(tmp_path))


def test_a_process_without_room_for_all_files_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_disk(_number: int, _offset: int, _size: int) -> None:
        if len(list(tmp_path.iterdir())) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", fill_disk)
    with pytest.raises(OSError, match="No space left"):
        metrics_files.create_files(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_scrape_forgets_dead_processes(client: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise their threads would be busy for ever."""
    monkeypatch.setenv(metrics_files.DIRECTORY_VARIABLE, str(tmp_path))
    gauge = tmp_path / f"gauge_livesum_{2**22}.db"
    gauge.touch()
    assert client.get("/metrics", headers=HEADERS).status_code == 200
    assert not gauge.exists()


def test_a_weak_token_is_refused_and_not_repeated() -> None:
    for value in ("with a space in the middle", "a" * 15):
        with pytest.raises(ImproperlyConfigured, match="METRICS_TOKEN") as refusal:
            read_settings({"METRICS_TOKEN": value})
        assert value not in str(refusal.value)
