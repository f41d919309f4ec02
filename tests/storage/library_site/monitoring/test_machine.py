"""What a scrape reads of the machine, of the database's connections, and of the accounts."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from axes.models import AccessAttempt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.db import connection
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from pytest_django import Settings

from library_site.deployment import machine
from library_site.deployment.backups.records import record_backup
from library_site.deployment.releases import VERSION
from library_site.http.request_log import ActiveRequest
from library_site.monitoring.metrics import ServerMetrics
from library_site.monitoring.sources import read_connections
from oauth.metrics import read_accounts
from oauth.models import AccountMail
from oauth.passwords.lockout import COOLOFF
from webhooks.metrics import read_expiry
from webhooks.models import Clearing

END = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


def read_values(metrics: Iterable[Metric]) -> dict[tuple[str, ...], float]:
    samples = [sample for metric in metrics for sample in metric.samples]
    return {(sample.name.removeprefix("library_"), *sample.labels.values()): sample.value for sample in samples}


def write_certificate(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "library.example")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, END - timedelta(days=90), END)
    path.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


def test_the_build_the_backup_and_the_certificate_are_told(tmp_path: Path, settings: Settings) -> None:
    settings.DATA_DIR, settings.CERTIFICATE_FILE = tmp_path, tmp_path / "certificate.pem"
    before = read_values(machine.read_machine())
    assert (before["backup_timestamp_seconds",], before["certificate_end_timestamp_seconds",]) == (0, 0)
    record_backup(END)
    write_certificate(settings.CERTIFICATE_FILE)
    values = read_values(machine.read_machine())
    assert values["backup_timestamp_seconds",] == values["certificate_end_timestamp_seconds",] == END.timestamp()
    assert [key[1] for key in values if key[0] == "build_info"] == [VERSION]
    disks = {key[1]: value for key, value in values.items() if key[0] == "disk_free_ratio"}
    assert disks.keys() == ({"data", "database"} if connection.vendor == "sqlite" else {"data"})
    assert all(0 < value < 1 for value in disks.values())


def test_the_processes_of_the_server_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getppid", os.getpid)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        values = read_values(machine.read_processes())
        name = next(name for name, pid in machine.list_processes(os.getpid()).items() if pid == child.pid)
        child.communicate(b"\n")
    assert values["process_memory_bytes", "parent"] > values["process_memory_bytes", name] > 0
    assert values["process_cpu_seconds_total", "parent"] == pytest.approx(sum(os.times()[:2]), abs=1)
    starts = [values["process_start_time_seconds", process] for process in ("parent", name)]
    assert starts[0] < starts[1] <= time.time() + 1
    assert machine.list_processes(child.pid) == {}


@pytest.mark.usefixtures("db")
def test_connections_are_told_by_their_process() -> None:
    values = read_values(read_connections())
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
    values = read_values(read_accounts())
    assert (values["mails_waiting",], values["sign_in_failures",]) == (2, 3)
    assert values["mails_overdue_seconds",] == pytest.approx(300, abs=60)
    assert read_values(read_expiry()) == {("expiry_overdue_seconds",): 0}
    Clearing.objects.create(pk=1, next_at=now - timedelta(hours=1))
    assert read_values(read_expiry())["expiry_overdue_seconds",] == pytest.approx(3600, abs=60)


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
