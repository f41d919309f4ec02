"""How the suite treats the programs that its tests start."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import programs
from tests.support.forked_commands import run_forked
from tests.support.program_fixtures import (
    GUARD,
    ProcessStarted,
    ProgramNotRequested,
    find_or_skip,
    pytest_runtest_setup,
)
from tests.support.programs import PROGRAMS, Program, find_command

COMMANDS = sorted(command for program in PROGRAMS.values() for command in program.commands)


def test_a_program_is_not_started_without_its_fixture() -> None:
    for command in COMMANDS:
        with pytest.raises(ProgramNotRequested, match="without the fixture"):
            subprocess.run([command], check=False, timeout=10)
    for call, message in (
        (["/usr/bin/openssl", "--version"], "`openssl`"),
        (["setpriv", "--reuid=nobody", "/opt/openssl"], "`openssl`"),
        (["/anywhere/playwright/driver/node", "run-driver"], "`chromium`"),
        (["git", "version"], "in neither PROGRAMS nor BASE_COMMANDS"),
        (["/usr/local/bin/pgbouncer"], "in neither PROGRAMS nor BASE_COMMANDS"),
    ):
        with pytest.raises(ProgramNotRequested, match=message):
            subprocess.run(call, check=False, timeout=10)
    # The processes of a test find no program either.
    find = ["sh", "-c", f"for command in {' '.join(COMMANDS)}; do command -v $command; done"]
    assert subprocess.run(find, stdout=subprocess.PIPE, check=False, timeout=10).stdout == b""


def test_a_program_that_is_spawned_or_takes_the_process_over_is_refused_too() -> None:
    with pytest.raises(ProgramNotRequested, match="`redis_server`"):
        os.posix_spawnp("redis-server", ["redis-server", "--version"], os.environ)
    # If exec were not refused, it would end the suite. So only its event is sent.
    with pytest.raises(ProgramNotRequested, match="`redis_server`"):
        sys.audit("os.exec", "redis-server", ["redis-server"], None)


def test_a_requested_program_may_be_started(openssl: str) -> None:
    for call in ([openssl, "version"], ["openssl", "version"], ["sh", "-c", "openssl version"]):
        subprocess.run(call, check=True, timeout=10, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(("variable", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_a_missing_program_skips_its_test_and_fails_it_in_ci(
    variable: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", variable)
    with pytest.raises(BaseException, match="Nothing is not on this machine: no-such-command") as end:
        find_or_skip(Program("Nothing", ("sh", "no-such-command"), "nothing"))
    assert end.type is outcome


def test_a_program_is_missing_if_one_of_its_commands_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # So is what a machine has and does not allow.
    trials = [Program("Shell", ("sh",), "sh", ("sh", "-c", f"exit {status}")).find_missing() for status in (0, 1)]
    assert trials == [[], ["sh -c exit 1"]]
    (tmp_path / "one").touch(mode=0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Program("Both", ("one", "two"), "both").find_missing() == ["two"]


def test_the_server_of_postgresql_is_not_found_without_its_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's packages need each other. A PATH without the programs has no PostgreSQL, too."""
    for version in ("9", "15"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "initdb").touch(mode=0o700)
    monkeypatch.setattr(programs, "DEBIAN_POSTGRESQL", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_command("initdb") is None
    (tmp_path / "psql").touch(mode=0o700)
    assert find_command("initdb") == str(tmp_path / "15" / "bin" / "initdb")


def test_the_packages_of_missing_programs_are_listed_for_debian(tmp_path: Path) -> None:
    call = [sys.executable, programs.__file__]
    assert subprocess.check_output(call, text=True, timeout=30).split() == [
        program.package for program in PROGRAMS.values()
    ]
    for command in COMMANDS:
        (tmp_path / command).touch(mode=0o700)
    (tmp_path / "unshare").write_text("#!/bin/sh\n")
    assert subprocess.check_output(call, env={"PATH": str(tmp_path)}, timeout=30) == b""


def test_a_folder_gets_all_commands_but_those_of_the_programs(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for command in (*COMMANDS, "other"):
        (tmp_path / "bin" / command).touch(mode=0o700)
    call = [sys.executable, programs.__file__, str(tmp_path / "links")]
    subprocess.run(call, env={"PATH": str(tmp_path / "bin")}, check=True, timeout=30)
    assert {path.name: path.resolve() for path in (tmp_path / "links").iterdir()} == {
        "other": tmp_path / "bin" / "other"
    }


def test_in_some_folders_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GUARD, "may_start_processes", True)
    item: Any = SimpleNamespace(nodeid="tests/api/books/test_books.py::test_x", fixturenames=["db"])
    pytest_runtest_setup(item)
    for start in (lambda: subprocess.run(["true"], check=False, timeout=10), lambda: run_forked(os.environ, "check")):
        with pytest.raises(ProcessStarted, match="lies in tests/served"):
            start()
    item.fixturenames.append("service")
    with pytest.raises(ProcessStarted):
        pytest_runtest_setup(item)


def test_a_module_with_such_a_test_is_marked(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("program_module")
