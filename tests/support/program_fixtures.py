"""A fixture for each program of `programs.py`. A test that starts one without it fails, on every machine.

A test finds on its PATH only the programs that it asks for, and its processes inherit that. What the test's own process
starts is refused with a sentence, also where it is called by its path.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from django.db import connection

from tests.__main__ import NODE_MODULES, NODE_PACKAGES
from tests.support.programs import PROGRAMS, Program, find_command, link_commands, link_other_commands

Test = TypeVar("Test", bound=Callable[..., None])

# Their tests start no process.
FOLDERS_WITHOUT_PROCESSES = ("tests/rules", "tests/api", "tests/admin")
# Every machine with the library has these.
BASE_COMMANDS = {"cat", "echo", "sh", Path(sys.executable).name}
# It runs another command, the first of its arguments that is no option.
PREFIX_COMMAND = "setpriv"
FIXTURES = {command: fixture for fixture, program in PROGRAMS.items() for command in program.commands}
# Playwright's Node starts the browser.
BROWSER_DRIVER = ("playwright", "driver", "node")


class ProgramNotRequested(BaseException):
    """A test starts a program without its fixture. No `except Exception` of the tested code hides it."""


class ProcessStarted(BaseException):
    """A test starts a process in a folder whose tests start none."""


class ProgramGuard:
    """Refuses the programs that the running test has not asked for, and every process in some folders."""

    def __init__(self) -> None:
        self.requested: set[str] = set()
        self.may_start_processes = True
        self.folder = Path(tempfile.mkdtemp(prefix="library-programs-"))
        # PostgreSQL runs as another user where the suite is root's.
        self.folder.chmod(0o755)
        link_other_commands(self.folder / "others")
        for fixture, program in PROGRAMS.items():
            link_commands(self.folder / fixture, program.commands)

    def allow(self, fixtures: set[str]) -> None:
        self.requested = fixtures
        os.environ["PATH"] = os.pathsep.join(str(self.folder / name) for name in [*sorted(fixtures), "others"])

    def check(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook (PEP 578)."""
        if event in ("subprocess.Popen", "os.exec", "os.posix_spawn"):
            if not self.may_start_processes:
                raise ProcessStarted("A test that starts a process lies in tests/served, or in tests/storage.")
            self.check_call(os.fsdecode(arguments[0]), arguments[1])

    def check_call(self, command: str, words: Sequence[str | bytes | Path]) -> None:
        if Path(command).name == PREFIX_COMMAND:
            command = next(word for word in map(os.fsdecode, words[1:]) if not word.startswith("-"))
        fixture = find_fixture(command)
        if fixture and fixture not in self.requested:
            raise ProgramNotRequested(f"This test starts {command} without the fixture `{fixture}`.")
        if not fixture and not self.may_always_start(command):
            raise ProgramNotRequested(f"{command} is in neither PROGRAMS nor BASE_COMMANDS (tests/support).")

    def may_always_start(self, command: str) -> bool:
        """Tells whether every machine has the command, or a test has written it."""
        path = Path(shutil.which(command) or command)
        is_temporary = path.is_relative_to(tempfile.gettempdir()) and not path.is_relative_to(self.folder)
        return path.name in BASE_COMMANDS or is_temporary


def find_fixture(command: str) -> str | None:
    path = Path(command)
    return "chromium" if path.parts[-3:] == BROWSER_DRIVER else FIXTURES.get(path.name)


def get_requested(item: pytest.Item) -> set[str]:
    return PROGRAMS.keys() & set(getattr(item, "fixturenames", ()))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the modules in which a test asks for a program."""
    modules = {item.path for item in items if get_requested(item)}
    for item in items:
        if item.path in modules:
            item.add_marker("program_module")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    GUARD.allow(get_requested(item))
    GUARD.may_start_processes = not item.nodeid.startswith(FOLDERS_WITHOUT_PROCESSES)
    if "service" in getattr(item, "fixturenames", ()):
        # It may have been started before.
        sys.audit("subprocess.Popen", sys.executable, ["manage.py", "serve"])


def pytest_unconfigure() -> None:
    shutil.rmtree(GUARD.folder)


def make_fixture(name: str) -> Callable[[], str]:
    @pytest.fixture(scope="session", name=name)
    def provide() -> str:
        """The path of the program's first command."""
        return find_or_skip(PROGRAMS[name])

    return provide


def find_or_skip(program: Program) -> str:
    """Returns the path of the program's first command. Skips the test if one of its commands is missing."""
    if missing := program.find_missing():
        skip(f"{program.name} is not on this machine: {', '.join(missing)}")
    return str(find_command(program.commands[0]))


def request_dump_programs(test: Test) -> Test:
    """Decorates a test that copies the suite's database. SQLite needs no program for it."""
    return test if connection.vendor == "sqlite" else pytest.mark.usefixtures("postgresql")(test)


def skip(reason: str) -> None:
    """Skips the test. In CI it fails, because nothing may be missing there."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


GUARD = ProgramGuard()
sys.addaudithook(GUARD.check)
globals().update({name: make_fixture(name) for name in PROGRAMS})


@pytest.fixture
def node_packages(node: str) -> None:
    """The packages of package.json; a test that asks for them may start Node."""
    for name in NODE_PACKAGES:
        if not (NODE_MODULES / name).exists():
            skip(f"{name} is not on this machine")
