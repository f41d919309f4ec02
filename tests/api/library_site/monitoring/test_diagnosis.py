"""`doctor`: each thing that is broken is a finding of its own, with a section that there is."""

import re
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone
from pytest_django import Settings

from books.models import LentBook, SearchText
from library_site.deployment import diagnosis
from library_site.deployment.backups import record_backup
from library_site.deployment.diagnosis import CHECKS, Finding, diagnose
from tests.support.failures import break_database
from webhooks.models import Clearing

pytestmark = pytest.mark.usefixtures("db")

OPERATIONS = Path(__file__).parents[4] / "docs/operations"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings) -> Path:
    settings.DATA_DIR = settings.STATIC_ROOT = tmp_path
    return tmp_path


def find(check: str, **moved: Any) -> list[Finding]:
    return [finding for finding in diagnose(timezone.now() + timedelta(**moved)) if finding.check == check]


def find_levels(check: str, **moved: Any) -> set[str]:
    return {finding.level for finding in find(check, **moved)}


def test_a_library_that_is_well_has_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "MIN_FREE_RATIO", 0.0)
    record_backup(timezone.now())
    findings = list(diagnose(timezone.now()))
    assert {finding.level for finding in findings if finding.check != "settings"} == {"ok"}
    assert {finding.check for finding in findings} == CHECKS.keys()
    assert all(finding.text and "\n" not in finding.text for finding in findings)


def test_a_database_that_is_away_hides_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with break_database(OperationalError("gone\nand away")), pytest.raises(SystemExit, match="1"):
        call_command("doctor", stdout=(output := StringIO()))
    lines = output.getvalue().splitlines()
    assert (
        "problem  migrations  OperationalError: gone and away (docs/operations/install.md#upgrade-and-rollback)"
        in lines
    )
    assert any(line.startswith("warning  backup") for line in lines)


def test_missing_and_later_migrations_are_told() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_migrations SET name = '0999_later' WHERE name = '0027_import_corrections'")
    assert [finding.level for finding in find("migrations")] == ["warning", "problem"]


def test_a_queue_that_is_late_is_told() -> None:
    Clearing.objects.create(pk=1, next_at=timezone.now() - timedelta(seconds=60))
    assert find_levels("queues") == {"ok"}
    Clearing.objects.update(next_at=timezone.now() - timedelta(hours=1))
    [late] = [finding for finding in find("queues") if finding.level == "problem"]
    assert late.text.startswith("expiry: due for 36")


def test_tables_that_disagree_are_told() -> None:
    assert find_levels("tables") == {"ok"}
    for row in (LentBook(pk=-1), SearchText(pk=-1, is_folded=True)):
        row.save()
        assert sorted(finding.level for finding in find("tables")) == ["ok", "problem"]
        row.delete()


def test_a_clock_that_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the checks before it took."""
    for seconds, level, text in ((0, "ok", "0 s "), (60, "problem", "60 s ahead of"), (-60, "problem", "60 s behind")):
        ahead = timedelta(seconds=seconds)
        monkeypatch.setattr(diagnosis, "get_database_time", lambda ahead=ahead: timezone.now() + ahead)
        [finding] = find("clock", hours=-1)
        assert (finding.level, text in finding.text) == (level, True)


def test_folders_and_disks_that_cannot_be_used_are_told(
    folder: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "MIN_FREE_RATIO", 1.0)
    assert find_levels("disks") == {"problem"}
    assert all(re.fullmatch(r"(data|database): \d+% free, \d+(\.\d)? [KMGTP]B", disk.text) for disk in find("disks"))
    settings.LIBRARY_PROCESS, settings.DATA_DIR, settings.STATIC_ROOT = "doctor", folder / "away", folder / "static"
    found = {finding.text.partition(":")[0]: finding.level for finding in find("settings")}
    assert (found["library_site.E004"], found["library_site.W011"]) == ("problem", "warning")


def test_a_missing_and_an_old_backup_are_told() -> None:
    assert find_levels("backup") == {"warning"}
    record_backup(timezone.now())
    assert [find_levels("backup", hours=hours) for hours in (35, 37)] == [{"ok"}, {"problem"}]


def test_each_section_is_there() -> None:
    for section, _ in CHECKS.values():
        page, _, anchor = section.partition("#")
        headings = re.findall(r"^#+ (.+)$", (OPERATIONS / page).read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}, section
