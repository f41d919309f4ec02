"""A fixture for each program of `programs.py`. `.ci/run` tries the tests on a machine without the programs, too."""

import os
from collections.abc import Callable
from typing import TypeVar

import pytest
from django.db import connection

from tests.__main__ import NODE_MODULES, NODE_PACKAGES
from tests.support.programs import PROGRAMS, Program, find_command

Test = TypeVar("Test", bound=Callable[..., None])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the modules in which a test asks for a program."""
    modules = {item.path for item in items if PROGRAMS.keys() & set(getattr(item, "fixturenames", ()))}
    for item in items:
        if item.path in modules:
            item.add_marker("program_module")


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


globals().update({name: make_fixture(name) for name in PROGRAMS})


@pytest.fixture
def node_packages(node: str) -> None:
    """The packages of package.json; a test that asks for them may start Node."""
    for name in NODE_PACKAGES:
        if not (NODE_MODULES / name).exists():
            skip(f"{name} is not on this machine")
