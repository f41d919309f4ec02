"""The commands of the Makefile in a fresh checkout: what they prepare, one at a time, and what they say meanwhile."""

import fcntl
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import PROCESS_TIMEOUT, wait_until

ROOT = Path(__file__).parents[3]
# They need none of the packages.
STANDALONE_TARGETS = {"help", "image", "lock"}
PIP_OUTPUT = ["Ignoring colorama", "Collecting django", "Processing rich", "Installing collected packages: x"]


@pytest.fixture
def bootstrap(tmp_path: Path) -> Any:
    """The module `bootstrap` of a checkout of its own."""
    (tmp_path / "requirements").mkdir()
    path = Path(shutil.copy(ROOT / "requirements" / "bootstrap.py", tmp_path / "requirements"))
    spec: Any = spec_from_file_location("bootstrap", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / ".data").mkdir()
    (tmp_path / "requirements" / "run.txt").write_text(
        "colorama==1 ; sys_platform == 'win32'\ndjango==5\nrich[all]==1 \\\n    --hash=sha256:00==\n"
    )
    return module


@contextmanager
def start_preparation(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Yields a process that holds the lock while its child `cat` runs."""
    code = "import bootstrap\nwith bootstrap.lock(): bootstrap.run('cat')"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write("begun\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        assert process.stdout.readline() == "begun\n"  # type: ignore[union-attr]
        yield process


def is_locked(bootstrap: Any) -> bool:
    with (bootstrap.DATA / "bootstrap.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def install_fake_pip(bootstrap: Any, status: int) -> None:
    """A Python whose pip prints what pip prints, notes that it ran, and ends with this status."""
    bootstrap.PYTHON.parent.mkdir(parents=True, exist_ok=True)
    prints = "\n".join(f"echo '{line}'" for line in PIP_OUTPUT)
    bootstrap.PYTHON.write_text(f"#!/bin/sh\necho once >> {bootstrap.VENV}/runs\n{prints}\nexit {status}\n")
    bootstrap.PYTHON.chmod(0o700)


@pytest.mark.usefixtures("gnu_make")
def test_every_command_can_be_the_first() -> None:
    targets = {*re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)} - STANDALONE_TARGETS
    assert len(targets) > 5
    for target in targets:
        call = ["make", "-n", target]
        commands = subprocess.check_output(call, cwd=ROOT, text=True, timeout=PROCESS_TIMEOUT).splitlines()
        assert re.fullmatch(r"python3 requirements/bootstrap.py (run|dev|test|clients|bench)", commands[0]), target


def test_a_second_make_waits_for_the_first(bootstrap: Any, capsys: pytest.CaptureFixture[str]) -> None:
    output: list[str] = []

    def prepare() -> None:
        with bootstrap.lock():
            output.append("prepared")

    def has_said_that_it_waits() -> bool:
        output.append(capsys.readouterr().out)
        return "Waiting for it" in "".join(output)

    with ThreadPoolExecutor() as threads:
        with bootstrap.lock():
            second = threads.submit(prepare)
            wait_until(has_said_that_it_waits)
            assert "prepared" not in output
        second.result(timeout=30)
    assert "prepared" in output


def test_a_killed_make_leaves_no_lock(bootstrap: Any, tmp_path: Path) -> None:
    with start_preparation(tmp_path / "requirements") as process:
        process.kill()
        process.wait()
        # What it had started is still at work.
        assert is_locked(bootstrap)
    wait_until(lambda: not is_locked(bootstrap))


def test_packages_are_installed_once(bootstrap: Any, capfd: pytest.CaptureFixture[str]) -> None:
    install_fake_pip(bootstrap, status=0)
    bootstrap.install_for_run()
    first_output = capfd.readouterr().out
    bootstrap.install_for_run()
    assert [line.strip() for line in first_output.splitlines()] == [
        "Installing the packages that the library needs into .venv. The first time this takes a minute or two.",
        "2 packages",
    ]
    assert capfd.readouterr().out == ""
    assert (bootstrap.VENV / "runs").read_text() == "once\n"


def test_a_failed_installation_says_why_and_begins_anew(
    bootstrap: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    install_fake_pip(bootstrap, status=1)
    with pytest.raises(SystemExit) as failure:
        bootstrap.install_for_run()
    assert "Installing collected packages: x" in str(failure.value)
    assert "The next make tries it again." in str(failure.value)
    capfd.readouterr()
    monkeypatch.setattr(sys, "executable", shutil.which("echo"))
    with pytest.raises(SystemExit):
        bootstrap.install_for_run()
    assert f"-m venv --clear {bootstrap.VENV}" in capfd.readouterr().out


@pytest.fixture
def node_folder(bootstrap: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a lock file. Its npm installs a package, notes that it ran, and ends with the text of `status`."""
    folder = tmp_path / "client"
    folder.mkdir()
    (folder / "package-lock.json").write_text("{}")
    npm = tmp_path / "npm"
    npm.write_text(
        f"#!/bin/sh\nmkdir -p {folder}/node_modules/x\necho once >> {folder}/runs\nexit $(cat {folder}/status)\n"
    )
    npm.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return folder


def test_node_packages_are_installed_once(bootstrap: Any, node_folder: Path) -> None:
    (node_folder / "status").write_text("0")
    bootstrap.install_node_packages(node_folder, "a client")
    bootstrap.install_node_packages(node_folder, "a client")
    assert (node_folder / "node_modules" / ".installed").exists()
    assert (node_folder / "runs").read_text() == "once\n"


def test_node_packages_out_of_reach_stop_nothing(bootstrap: Any, node_folder: Path) -> None:
    (node_folder / "status").write_text("1")
    bootstrap.install_node_packages(node_folder, "a client")
    assert not (node_folder / "node_modules").exists()
