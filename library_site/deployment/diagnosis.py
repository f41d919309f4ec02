"""Finds problems of the library, and names the document about each. It changes nothing."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.core import checks
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.module_loading import import_string

from library_site.db.connections import describe_database
from library_site.db.migration_state import has_all_migrations
from library_site.db.sql import get_database_time
from library_site.db.texts import describe_error
from library_site.deployment.backups import read_backup_time
from library_site.deployment.checks import list_folders
from library_site.deployment.machine import read_disks
from library_site.deployment.releases import VERSION, list_unknown_migrations

OK, WARNING, PROBLEM = "ok", "warning", "problem"
# As in docs/deploy/prometheus-rules.yml.
MAX_OVERDUE_SECONDS, MIN_FREE_RATIO, MAX_BACKUP_AGE = 120, 0.2, timedelta(hours=36)
MAX_CLOCK_SECONDS = 5


class Finding(NamedTuple):
    """`section` is a place in docs/operations."""

    level: str
    check: str
    text: str
    section: str


def diagnose(now: datetime) -> Iterator[Finding]:
    """Yields one or more findings for each check. A check that raises an error is a finding, too."""
    for name, (section, check) in CHECKS.items():
        try:
            for level, text in check(now):
                yield Finding(level, name, " ".join(text.split()), section)
        # The other checks still run.
        except Exception as error:
            yield Finding(PROBLEM, name, " ".join(describe_error(error).split()), section)


Texts = Iterable[tuple[str, str]]
"""Levels, each with a text."""


def check_settings(_now: datetime) -> Texts:
    messages = checks.run_checks(include_deployment_checks=settings.SECURE_SSL_REDIRECT)
    for message in messages:
        if not message.is_silenced():
            yield PROBLEM if message.level >= checks.ERROR else WARNING, f"{message.id}: {message.msg}"
    if not messages:
        yield OK, f"Library API {VERSION}, no check fails"


def diagnose_database(_now: datetime) -> Texts:
    connection.ensure_connection()
    yield OK, describe_database(connection)


def check_migrations(_now: datetime) -> Texts:
    applied = set(MigrationRecorder(connection).applied_migrations())
    if unknown := list_unknown_migrations(applied):
        yield WARNING, f"a later release has changed the tables: {'.'.join(unknown[-1])}"
    yield (OK, "none is missing") if has_all_migrations(applied) else (PROBLEM, "run `deploy`: some are missing")


def check_queues(_now: datetime) -> Texts:
    """Uses the metrics that tell for how long rows of a queue have been due."""
    for path in settings.METRIC_SOURCES:
        for metric in import_string(path)():
            if metric.name.endswith("_overdue_seconds"):
                queue, seconds = metric.name.removeprefix("library_").partition("_")[0], metric.samples[0].value
                level = PROBLEM if seconds > MAX_OVERDUE_SECONDS else OK
                yield level, f"{queue}: due for {seconds:.0f} s" if level == PROBLEM else f"{queue}: none is late"


def check_tables(_now: datetime) -> Texts:
    for name, path in settings.CONSISTENCY_CHECKS.items():
        count = import_string(path)()
        yield (PROBLEM, f"{name}: {count} are wrong; `migrate` corrects them") if count else (OK, name)


def check_clock(_now: datetime) -> Texts:
    # The time is read again, because the checks before may have taken long.
    seconds = (get_database_time() - timezone.now()).total_seconds()
    level = OK if abs(seconds) <= MAX_CLOCK_SECONDS else PROBLEM
    yield (
        level,
        f"that of the database is {abs(seconds):.0f} s {'behind' if seconds < 0 else 'ahead of'} this machine's",
    )


def check_disks(_now: datetime) -> Texts:
    for sample in read_disks().samples:
        level = OK if sample.value >= MIN_FREE_RATIO else PROBLEM
        folder = sample.labels["folder"]
        disk = os.statvfs(list_folders()[folder])
        free = filesizeformat(disk.f_bavail * disk.f_frsize).replace("\xa0", " ")
        yield level, f"{folder}: {sample.value:.0%} free, {free}"


def check_backup(now: datetime) -> Texts:
    made_at = read_backup_time()
    if made_at is None:
        yield WARNING, "this machine has made none"
    else:
        yield OK if now - made_at <= MAX_BACKUP_AGE else PROBLEM, f"made {made_at:%Y-%m-%d %H:%M} UTC"


CHECKS: Mapping[str, tuple[str, Callable[[datetime], Texts]]] = {
    "settings": ("install.md#deployment", check_settings),
    "database": ("runbook.md#databases", diagnose_database),
    "migrations": ("install.md#upgrade-and-rollback", check_migrations),
    "tables": ("troubleshooting.md#it-answers-but-not-as-it-should", check_tables),
    "queues": ("runbook.md#delivery-workers", check_queues),
    "clock": ("install.md#more-machines", check_clock),
    "disks": ("monitoring.md#what-to-alert-on", check_disks),
    "backup": ("runbook.md#backups", check_backup),
}
