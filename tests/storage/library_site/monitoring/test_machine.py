"""What a scrape reads of the machine, of the database's connections, and of the accounts."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from axes.models import AccessAttempt
from django.db import connection
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from pytest_django import Settings

from library_site.deployment import machine
from library_site.deployment.backups import record_backup
from library_site.deployment.releases import VERSION
from library_site.http.request_log import ActiveRequest
from library_site.monitoring.metrics import ServerMetrics
from library_site.monitoring.sources import read_connections
from oauth.metrics import read_accounts
from oauth.models import AccountMail
from oauth.passwords.lockout import COOLOFF
from tests.support.metrics import read_samples
from webhooks.metrics import read_expiry
from webhooks.models import Clearing

END = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


def test_the_build_and_the_backup_are_told(tmp_path: Path, settings: Settings) -> None:
    settings.DATA_DIR = tmp_path
    assert read_samples(machine.read_machine())["backup_timestamp_seconds",] == 0
    record_backup(END)
    values = read_samples(machine.read_machine())
    assert values["backup_timestamp_seconds",] == END.timestamp()
    assert [key[1] for key in values if key[0] == "build_info"] == [VERSION]
    disks = {key[1]: value for key, value in values.items() if key[0] == "disk_free_ratio"}
    assert disks.keys() == ({"data", "database"} if connection.vendor == "sqlite" else {"data"})
    assert all(0 < value < 1 for value in disks.values())


@pytest.mark.usefixtures("db")
def test_connections_are_told_by_their_process() -> None:
    values = read_samples(read_connections())
    if connection.vendor == "sqlite":
        assert values == {}
        return
    counts = {key[1]: value for key, value in values.items() if key[0] == "database_connections"}
    assert counts.keys() == {"web", "worker", "command", "other"}
    assert 0 < sum(counts.values()) < values["database_connections_max",]


@pytest.mark.usefixtures("db")
def test_mails_failed_sign_ins_and_a_late_deletion_are_told() -> None:
    now = timezone.now()
    for due_at in (now - timedelta(minutes=5), now + timedelta(hours=1), None):
        AccountMail.objects.create(kind="reset", address="a@library.example", created_at=now, due_at=due_at)
    for age, failures in ((timedelta(0), 3), (COOLOFF, 40)):
        row = AccessAttempt.objects.create(username=f"user:{age}", failures_since_start=failures)
        AccessAttempt.objects.filter(pk=row.pk).update(attempt_time=now - age)
    values = read_samples(read_accounts())
    assert (values["mails_waiting",], values["sign_in_failures",]) == (2, 3)
    assert values["mails_overdue_seconds",] == pytest.approx(300, abs=60)
    assert read_samples(read_expiry()) == {("expiry_overdue_seconds",): 0}
    Clearing.objects.create(pk=1, next_at=now - timedelta(hours=1))
    assert read_samples(read_expiry())["expiry_overdue_seconds",] == pytest.approx(3600, abs=60)


def test_counters_are_there_before_they_count() -> None:
    metrics = ServerMetrics(CollectorRegistry())
    text = generate_latest(metrics.registry).decode()
    names = ("library_database_errors_total", "library_limit_refusals_total")
    assert [line for line in text.splitlines() if line.startswith(names)] == [
        'library_database_errors_total{kind="unavailable"} 0.0',
        'library_database_errors_total{kind="busy"} 0.0',
        'library_database_errors_total{kind="failed"} 0.0',
        "library_limit_refusals_total 0.0",
    ]
    entry = ActiveRequest("GET", "/", "", 0, connection)
    for status in (200, 429, 503):
        metrics.observe({}, entry, "", status, 0.1)
    assert "library_limit_refusals_total 1.0" in generate_latest(metrics.registry).decode()
