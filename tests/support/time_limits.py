"""Ends a test that takes too long, and says where each of its threads was."""

import faulthandler
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

# Many times what the longest test takes alone: other work slows it down.
DEFAULT_LIMIT = 300
# Seconds after which the rest of the test, such as the end of a block `with`, is ended too.
REPETITION = 10


class TimeLimitExceeded(BaseException):
    """The test takes too long. Neither the tested code nor Hypothesis takes it for a failure of their own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    explanation = "Seconds that a test may take, and its fixtures before and after it"
    parser.addoption("--time-limit", type=float, default=DEFAULT_LIMIT, help=explanation)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[Any]:
    with limit_time(item):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    with limit_time(item):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[Any]:
    with limit_time(item):
        return (yield)


@contextmanager
def limit_time(item: pytest.Item) -> Iterator[None]:
    """Raises TimeLimitExceeded in the block when the time is over, and again and again until the block has ended."""
    limit = item.config.getoption("time_limit")

    def end_test(_: int, frame: FrameType | None) -> None:
        raise TimeLimitExceeded(f"{item.nodeid} takes more than {limit:g} seconds.\n{list_stacks()}")

    signal.signal(signal.SIGALRM, end_test)
    signal.setitimer(signal.ITIMER_REAL, limit, REPETITION)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def list_stacks() -> str:
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        return file.read()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends the process if a thread that a test has left does not end."""
    # An end of this kind writes nothing that waits to be written.
    sys.stdout.flush()
    faulthandler.dump_traceback_later(config.getoption("time_limit"), exit=True, file=2)
