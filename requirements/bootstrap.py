"""Prepares a fresh checkout for a command of the Makefile: `python requirements/bootstrap.py run|dev|test|bench`.

It needs Python alone. One process works at a time, and the others wait for it. What is there already is left as it is,
without a word.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / ".data"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
# It exists while packages are being installed. An installation that was interrupted starts anew.
INSTALLATION_MARKER = VENV / "unfinished"
CLIENTS = ROOT / "tests" / "clients"
GENERATORS = CLIENTS / "generated"
GENERATORS_VENV = DATA / "clients"
FASTIFY_PEER = ROOT / "benchmarks" / "peers" / "fastify"
# What pip prints for each package: from its index, from a file, and one that is there already.
PACKAGE_LINES = ("Collecting ", "Processing ", "Requirement already satisfied")
# The requirements of development contain those of the library.
CONTAINED_REQUIREMENTS = {"run.txt": ["run.txt"], "dev.txt": ["dev.txt", "run.txt"]}


def main(purpose: str) -> None:
    if sys.version_info < (3, 11):  # noqa: UP036  # `make` may find an older one
        sys.exit(f"The library needs Python 3.11 or later, and {sys.executable} is older: make PYTHON=…")
    DATA.mkdir(mode=0o700, exist_ok=True)
    DATA.chmod(0o700)
    with lock():
        for prepare in STEPS[purpose]:
            prepare()


@contextlib.contextmanager
def lock() -> Iterator[None]:
    """Waits until no other process prepares this checkout. The lock ends with its processes, however they end."""
    with (DATA / "bootstrap.lock").open("w") as file:
        # pip and the other commands inherit it: if this process is killed, the lock lasts until they have ended.
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003  # os defines it so
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("Another make prepares this checkout. Waiting for it.")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install_for_run() -> None:
    install_packages("run.txt", "the packages that the library needs")


def install_for_dev() -> None:
    install_packages("dev.txt", "the packages that the library and its tests need")


def install_packages(name: str, what: str) -> None:
    requirements = ROOT / "requirements" / name
    if PYTHON.exists() and not INSTALLATION_MARKER.exists() and read_text(VENV / name) == requirements.read_text():
        return
    report(f"Installing {what} into .venv. The first time this takes a minute or two.")
    if not PYTHON.exists() or INSTALLATION_MARKER.exists():
        run(sys.executable, "-m", "venv", "--clear", str(VENV))
    INSTALLATION_MARKER.touch()
    run_pip(requirements)
    for contained in CONTAINED_REQUIREMENTS[name]:
        shutil.copy(ROOT / "requirements" / contained, VENV / contained)
    INSTALLATION_MARKER.unlink()


def run_pip(requirements: Path) -> None:
    """Installs the packages and counts them meanwhile. Shows the end of pip's output if it fails."""
    options = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--require-hashes"]
    command = [str(PYTHON), "-m", "pip", "install", *options, "-r", str(requirements)]
    count, total, output = 0, len(re.findall(r"^[\w.-]+(?:\[.*\])?==", requirements.read_text(), re.MULTILINE)), []
    environment = {**os.environ, "PIP_QUIET": "0", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, close_fds=False
    ) as pip:
        for line in pip.stdout or ():
            output.append(line)
            # pip ignores packages for other systems.
            total -= line.startswith("Ignoring ")
            if line.startswith(PACKAGE_LINES):
                count += 1
                show_progress(f"{count} of {total} packages")
            elif line.startswith("Installing collected packages"):
                show_progress(f"{count} packages, which are being unpacked")
    if pip.returncode:
        sys.exit("\n" + "".join(output[-20:]) + "The packages could not be installed. The next make tries it again.")
    show_progress(f"{count} packages\n")


def install_clients() -> None:
    install_node_packages(CLIENTS, "the clients of the tests")


def install_generators() -> None:
    """In an environment of their own. Out of reach of their index they are missing, as those of Node are."""
    install_node_packages(GENERATORS, "the generators of clients in TypeScript")
    requirements, installed = ROOT / "requirements" / "clients.txt", GENERATORS_VENV / "clients.txt"
    if read_text(installed) == requirements.read_text():
        return
    report(f"Installing the generators of clients in Python into {GENERATORS_VENV.relative_to(ROOT)}.")
    run(sys.executable, "-m", "venv", "--clear", str(GENERATORS_VENV))
    pip = [str(GENERATORS_VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--require-hashes", "-r", str(requirements)], check=False, close_fds=False).returncode:
        shutil.rmtree(GENERATORS_VENV, ignore_errors=True)
    else:
        shutil.copy(requirements, installed)


def install_fastify_peer() -> None:
    install_node_packages(FASTIFY_PEER, "the packages of the Fastify service")


def install_node_packages(folder: Path, what: str) -> None:
    """Without npm, or out of its registry's reach, they are missing. Who needs them goes on and says so loudly."""
    lock_file, installed = folder / "package-lock.json", folder / "node_modules" / ".installed"
    if read_text(installed) == lock_file.read_text() or not shutil.which("npm"):
        return
    report(f"Installing {what} into {folder.relative_to(ROOT)}/node_modules.")
    command = ["npm", "ci", "--prefix", str(folder), "--ignore-scripts", "--loglevel=error"]
    if subprocess.run(command, stdout=subprocess.DEVNULL, check=False, close_fds=False).returncode:
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
    else:
        shutil.copy(lock_file, installed)


def set_up_library() -> None:
    run(str(PYTHON), "manage.py", "set_up", "--example-books")


def create_keys() -> None:
    """And static files, because suites that begin at the same time would copy these over each other."""
    run(str(PYTHON), "manage.py", "set_up", "--without-database")


def run(*command: str) -> None:
    """Runs the command. If it fails, this process ends with its status: it has said why."""
    if status := subprocess.run(command, cwd=ROOT, check=False, close_fds=False).returncode:
        sys.exit(status)


def read_text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def report(text: str, end: str = "\n") -> None:
    print(text, end=end, flush=True)  # noqa: T201  # for the person who called make


def show_progress(text: str) -> None:
    """On a terminal each text replaces the one before. Elsewhere only the last is shown, which ends the line."""
    if sys.stdout.isatty():
        report(f"\r\x1b[K  {text}", end="")
    elif text.endswith("\n"):
        report(f"  {text}", end="")


STEPS: dict[str, list[Callable[[], None]]] = {
    "run": [install_for_run, set_up_library],
    "dev": [install_for_dev, create_keys],
    "test": [install_for_dev, install_clients, create_keys],
    "clients": [install_for_dev, install_generators, create_keys],
    "bench": [install_for_dev, install_fastify_peer, create_keys],
}

if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. The next make continues.")
