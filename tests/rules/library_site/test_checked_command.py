"""What the system checks find when a command starts: a line each, and what stops the start."""

import logging
import os
from pathlib import Path

import pytest
from django.core import checks
from django.core.management.base import SystemCheckError
from pytest_django import Settings

from library_site.deployment.checks import check_written_paths, iter_unwritable_paths
from library_site.management.commands.check import Command

WARNING = checks.Warning("It is\nunlikely.", hint="Set\tit.", id="x.W001")
ERROR = checks.Error("It is wrong.", id="x.E001")
INFO = checks.Info("It is so.", id="x.I001")


def find(monkeypatch: pytest.MonkeyPatch, *messages: checks.CheckMessage) -> None:
    monkeypatch.setattr(checks, "run_checks", lambda *_, **__: [*messages])


def test_each_finding_is_a_line_with_its_level_and_the_worst_comes_first(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    find(monkeypatch, INFO, WARNING, ERROR)
    caplog.set_level(logging.INFO, "library_site.deployment.checks")
    with pytest.raises(SystemCheckError, match=r"^Checks that failed: 1\. "):
        Command().check()
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.ERROR, "(x.E001) It is wrong."),
        (logging.WARNING, "(x.W001) It is unlikely. HINT: Set it."),
        (logging.INFO, "(x.I001) It is so."),
    ]


def test_only_findings_of_the_level_asked_for_end_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    find(monkeypatch, WARNING)
    Command().check()
    with pytest.raises(SystemCheckError):
        Command().check(fail_level=checks.WARNING)


def test_a_silenced_finding_is_none(
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings.SILENCED_SYSTEM_CHECKS = [WARNING.id, ERROR.id]
    find(monkeypatch, WARNING)
    Command().check(display_num_errors=True, fail_level=checks.WARNING)
    assert not caplog.records
    assert capsys.readouterr().out == "Findings of the checks: 0.\n"


def refuse_access(monkeypatch: pytest.MonkeyPatch, refused: Path) -> None:
    # The superuser, who may run the tests, can write everything.
    monkeypatch.setattr(os, "access", lambda path, _: path != refused)


@pytest.mark.parametrize("process", ["web", "worker"])
def test_a_process_that_cannot_write_does_not_start(
    process: str, monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    settings.DATA_DIR, settings.LIBRARY_PROCESS = tmp_path, process
    assert check_written_paths(None) == []
    refuse_access(monkeypatch, tmp_path)
    [error] = check_written_paths(None)
    assert error.is_serious()
    assert error.msg == f"This process cannot write {tmp_path}."
    settings.LIBRARY_PROCESS = "command"
    assert check_written_paths(None) == []


def test_the_file_of_sqlite_and_its_folder_are_written_too(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "library.sqlite3"
    away = tmp_path / "away" / "library.sqlite3"
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr("library_site.deployment.checks.find_database_file", lambda: file)
    for written in (file, *(Path(f"{file}{suffix}") for suffix in ("-wal", "-shm"))):
        refuse_access(monkeypatch, written)
        assert [*iter_unwritable_paths()] == []
        written.touch()
        assert [*iter_unwritable_paths()] == [written]
    # The folder for metrics is missing until the server makes it.
    settings.METRICS_DIR, settings.METRICS_TOKEN = tmp_path / "metrics" / "8000", "a-token-for-tests"
    assert [*iter_unwritable_paths()] == [written]
    refuse_access(monkeypatch, tmp_path)
    assert [*iter_unwritable_paths()] == [tmp_path, settings.METRICS_DIR]
    settings.METRICS_DIR = file / "metrics"
    assert [*iter_unwritable_paths()] == [tmp_path, settings.METRICS_DIR]
    settings.METRICS_TOKEN = ""
    assert [*iter_unwritable_paths()] == [tmp_path]
    monkeypatch.setattr("library_site.deployment.checks.find_database_file", lambda: away)
    monkeypatch.undo()
    settings.DATA_DIR = away.parent
    assert away.parent in iter_unwritable_paths()
