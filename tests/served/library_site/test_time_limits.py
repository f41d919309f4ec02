"""What ends the tests that do not end."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.waiting import PROCESS_TIMEOUT

ROOT = Path(__file__).parents[3]
HANGING_TESTS = """
    from concurrent.futures import ThreadPoolExecutor
    from threading import Event, Thread

    from tests.support import time_limits

    time_limits.REPETITION = 0.1

    def test_it_swallows_errors():
        while True:
            try:
                Event().wait()
            except Exception:
                pass

    def wait_in_a_thread(end):
        end.wait()

    def test_it_waits_for_its_thread():
        end = Event()
        with ThreadPoolExecutor() as threads:
            try:
                threads.submit(wait_in_a_thread, end).result()
            finally:
                end.set()

    def test_its_end_does_not_end():
        try:
            Event().wait()
        finally:
            Event().wait()

    def wait_for_ever():
        Event().wait()

    def test_it_leaves_a_thread():
        Thread(target=wait_for_ever).start()
"""


def run_pytest(folder: Path, *options: str) -> str:
    """Runs the tests of the folder with the plugin of the limits alone, and returns their output."""
    call = [sys.executable, "-Bm", "pytest", "-q", "-c", os.devnull, f"--rootdir={folder}", str(folder), *options]
    call += ["-ptests.support.time_limits", "-pno:cacheprovider"]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        call, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PROCESS_TIMEOUT
    ).stdout.decode()


def test_a_test_that_does_not_end_fails_and_says_where(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(dedent(HANGING_TESTS))
    output = run_pytest(tmp_path, "--time-limit=0.5")
    assert "test_it.py::test_it_swallows_errors takes more than 0.5 seconds." in output
    assert "in wait_in_a_thread" in output
    assert "3 failed, 1 passed" in output
    # The process does not wait for the thread either.
    assert "in wait_for_ever" in output.partition("3 failed")[2]


def test_every_wait_for_a_process_has_a_limit() -> None:
    """A thread of a test is not interrupted by the limit of the test."""
    codes = {path: path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    calls = [(path, call) for path, code in codes.items() if "subprocess." in code for call in find_calls(code)]
    assert len(calls) > 15
    assert [(path, ast.unparse(call)) for path, call in calls if not has_time_limit(call)] == []


def find_calls(code: str) -> Iterator[ast.Call]:
    """Yields the calls that wait for a process."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("subprocess.run", "subprocess.check_output"):
            yield node


def has_time_limit(call: ast.Call) -> bool:
    return any(keyword.arg == "timeout" for keyword in call.keywords)


def test_a_module_without_programs_is_not_marked(request: pytest.FixtureRequest) -> None:
    assert not request.node.get_closest_marker("program_module")
