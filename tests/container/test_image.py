"""The image with its volume, as the first process of a namespace on a root that cannot be written."""

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from library_site.deployment.releases import VERSION
from tests.support.last_release import restore_last_release
from tests.support.server import reserve_port
from tests.support.waiting import PROCESS_TIMEOUT, wait_until

pytestmark = pytest.mark.usefixtures("unshare")

FOLDER = Path(os.environ["LIBRARY_IMAGE"])
POLL_INTERVAL = 0.2
BOOK = {"title": "Persuasion", "author": "Jane Austen", "year": 1817, "isbn": "9780141439686", "genre": "Novel"}
# The file systems that engines mount. With `exec`, the command is the first process.
ENTER = """
set -e
mount --bind "$ROOT" "$ROOT"
mount --bind "$VOLUME" "$ROOT/data"
mount --bind /dev "$ROOT/dev"
mount -t tmpfs -o mode=1777 tmpfs "$ROOT/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$ROOT/tmp"
mount -t proc proc "$ROOT/proc"
mount -o remount,bind,ro "$ROOT"
exec chroot --userspec="$OWNER" "$ROOT" /usr/bin/env --ignore-environment "$@"
"""


class Container(NamedTuple):
    process: "subprocess.Popen[bytes]"
    log: Path
    url: str

    def find_pid(self) -> int:
        """Returns the id that its first process has on this machine."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        wait_until(lambda: children.read_text() != "")
        return int(children.read_text())

    def wait_until_ready(self) -> None:
        """Fails after four minutes: beside other suites, a first start takes long."""
        deadline = time.monotonic() + PROCESS_TIMEOUT
        while not self.is_ready():
            assert time.monotonic() < deadline, self.log.read_text()
            with suppress(subprocess.TimeoutExpired):
                raise AssertionError(self.process.wait(POLL_INTERVAL), self.log.read_text())

    def is_ready(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/readyz").status_code == 200
        return False

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Returns the status."""
        os.kill(self.find_pid(), number)
        return self.process.wait(PROCESS_TIMEOUT)

    def kill(self) -> None:
        """Ends it, if it still runs. The kernel forgets `unshare --kill-child` when the user changes."""
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)


class Image(NamedTuple):
    """Its root on this machine, and what it declares."""

    root: Path
    config: dict[str, Any]

    def start(self, volume: Path, log: Path, *command: str, **variables: str) -> Container:
        """Starts the entry point with a command, or else with the image's own."""
        config, variables = self.config, {"HOST": "127.0.0.1", "PORT": "8000", **variables}
        values = [*config["Env"], *(f"{name}={value}" for name, value in variables.items())]
        call = [f"--chdir={config['WorkingDir']}", *values, *config["Entrypoint"], *(command or config["Cmd"])]
        environment = os.environ | {"ROOT": str(self.root), "VOLUME": str(volume), "OWNER": config["User"]}
        unshare = ["unshare", "--pid", "--mount", "--fork", "sh", "-c", ENTER, "sh"]
        with log.open("w") as file:
            process = subprocess.Popen([*unshare, *call], env=environment, stdout=file, stderr=file)
        return Container(process, log, f"http://127.0.0.1:{variables['PORT']}")

    def run(self, volume: Path, *command: str, **variables: str) -> tuple[int, str]:
        """Returns status and output of a command of `manage.py`."""
        container = self.start(volume, volume.with_suffix(".command"), *command, **variables)
        return container.process.wait(PROCESS_TIMEOUT), container.log.read_text()

    @contextmanager
    def serve(self, volume: Path, **variables: str) -> Iterator[Container]:
        with reserve_port() as port:
            log = volume.with_suffix(f".{port}")
            container = self.start(volume, log, PORT=str(port), PUBLIC_URL=f"http://127.0.0.1:{port}", **variables)
            try:
                container.wait_until_ready()
                yield container
            finally:
                container.kill()

    def create_volume(self, path: Path) -> Path:
        path.mkdir(mode=0o700)
        shutil.chown(path, *map(int, self.config["User"].split(":")))
        return path


@pytest.fixture(scope="module")
def image() -> Image:
    description = json.loads((FOLDER / "image.json").read_text())
    return Image((FOLDER / "root").resolve(), description["Docker"]["config"])


@pytest.fixture(scope="module")
def volume(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first start in it is stopped while it creates the tables."""
    path = image.create_volume(tmp_path_factory.mktemp("image") / "volume")
    first = image.start(path, path.with_suffix(".first"))
    wait_until(lambda: "Creating the tables" in first.log.read_text())
    assert first.stop() == 128 + signal.SIGTERM
    return path


@pytest.fixture(scope="module")
def library(image: Image, volume: Path) -> Iterator[Container]:
    with image.serve(volume) as container:
        assert httpx.post(f"{container.url}/api/books", json=BOOK).status_code == 201
        yield container


def copy_volume(volume: Path, to: Path) -> Path:
    """Its server is idle, so that the files belong together."""
    subprocess.run(["sh", "-c", 'cp --archive "$0" "$1"', volume, to], check=True, timeout=PROCESS_TIMEOUT)
    return to


def test_no_process_is_root_and_none_may_write_the_root(image: Image, library: Container) -> None:
    status = Path(f"/proc/{library.find_pid()}/status").read_text()
    assert re.findall(r"^Uid:\t(\d+)|^NSpid:.*\t(\d+)$", status, re.MULTILINE) == [("10001", ""), ("", "1")]
    code = "import errno, pathlib; pathlib.Path('/library/new').touch()"
    assert "[Errno 30] Read-only file system" in image.run(Path(library.log).with_suffix(""), "shell", "-c", code)[1]


def test_its_health_is_known(image: Image, library: Container) -> None:
    _, *check = image.config["Healthcheck"]["Test"]
    call = ["unshare", "--mount", "chroot", str(image.root), "/usr/bin/env", *image.config["Env"]]
    port = library.url.rpartition(":")[2]
    healthy = subprocess.run([*call, f"PORT={port}", *check], check=False, capture_output=True, timeout=PROCESS_TIMEOUT)
    alone = subprocess.run([*call, "PORT=1", *check], check=False, capture_output=True, timeout=PROCESS_TIMEOUT)
    assert (healthy.returncode, alone.returncode) == (0, 1)


def test_commands_use_the_volume_beside_the_server(image: Image, volume: Path, library: Container) -> None:
    user = ("createsuperuser", "--noinput", "--username=ada", "--email=ada@example.org")
    assert image.run(volume, *user)[0] == 0
    status, output = image.run(volume, "create_api_key", "--user=ada", "--name=here", "--scopes=read write")
    key = output.split()[-1]
    response = httpx.patch(f"{library.url}/api/v2/books/1", json={"year": 1818}, headers={"X-API-Key": key})
    assert (status, response.status_code) == (0, 200)
    status, output = image.run(volume, "back_up", "/data/backup", "--verify")
    assert (status, "it has all " in output) == (0, True), output


def test_books_survive_a_stop_and_a_kill(image: Image, volume: Path, library: Container, tmp_path: Path) -> None:
    body = json.dumps({**BOOK, "title": "Emma", "isbn": "9780141439587"}).encode()
    with image.serve(copy_volume(volume, tmp_path / "volume")) as container:
        port = int(container.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client:
            fields = f"Host: localhost\r\nContent-Length: {len(body)}\r\nExpect: 100-continue"
            client.sendall(f"POST /api/books HTTP/1.1\r\n{fields}\r\n\r\n".encode())
            # The library asks for the body when the request is under way.
            assert client.recv(100).startswith(b"HTTP/1.1 100 ")
            os.kill(container.find_pid(), signal.SIGTERM)
            wait_until(lambda: "1 requests are under way" in container.log.read_text())
            client.sendall(body)
            assert client.recv(100).startswith(b"HTTP/1.1 201")
        assert container.process.wait(PROCESS_TIMEOUT) == 0
    for _ in range(2):
        with image.serve(tmp_path / "volume") as container:
            titles = [book["title"] for book in httpx.get(f"{container.url}/api/books").json()]
            assert titles == ["Persuasion", "Emma"]
            container.stop(signal.SIGKILL)


def test_two_first_starts_agree(image: Image, tmp_path: Path) -> None:
    volume = image.create_volume(tmp_path / "volume")
    with ExitStack() as stack:
        ports = [stack.enter_context(reserve_port()) for _ in range(2)]
        containers = [image.start(volume, tmp_path / str(port), PORT=str(port)) for port in ports]
        for container in containers:
            stack.callback(container.kill)
            container.wait_until_ready()
        logs = [container.log.read_text() for container in containers]
    for created in ("Created the secret key", "Created the key that signs", "Creating the tables"):
        assert sum(created in log for log in logs) == 1, logs


def test_a_volume_of_the_last_release_is_upgraded_and_does_not_go_back(
    image: Image, volume: Path, library: Container, tmp_path: Path
) -> None:
    volume = copy_volume(volume, tmp_path / "volume")
    file = volume / "library.sqlite3"
    restore_last_release(f"sqlite:///{file}")
    with image.serve(volume) as container:
        assert f"From Library API 1.0.0 to {VERSION}." in container.log.read_text()
        assert httpx.get(f"{container.url}/api/books").json()[0]["title"] == "1"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('books', '0999_later', '2026-01-01')"
        )
    status, output = image.run(volume, *image.config["Cmd"])
    assert (status, "A later release has changed this database: books.0999_later" in output) == (1, True), output
    with image.serve(volume, SET_UP="false", DATABASE_URL="sqlite:////data/library.sqlite3") as container:
        assert httpx.get(f"{container.url}/api/books").status_code == 200
