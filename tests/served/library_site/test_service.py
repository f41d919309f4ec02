"""The served library: what the server itself does with requests, and how it starts and stops."""

import http.client
import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from library_site.management.commands.serve import CommandRunner
from library_site.monitoring.shutdown import end_with_parent
from tests.support.books import build_book
from tests.support.concurrency import run_concurrently
from tests.support.forked_commands import ForkedProcess, run_forked
from tests.support.logs import list_children
from tests.support.programs import UNSHARE
from tests.support.server import (
    Service,
    copy_seeded_database,
    reserve_port,
    run_in_shell,
    serve_library,
    wait_for_port,
)
from tests.support.waiting import wait_until


def post_in_chunks(service: Service, chunks: Iterable[bytes]) -> tuple[int, Any]:
    """Creates a book with a chunked body, without Content-Length; returns the status and the JSON of the response."""
    with closing(http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=60)) as connection:
        connection.request("POST", "/api/books", iter(chunks), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.load(response)


def test_a_chunked_body_is_read(service: Service) -> None:
    body = json.dumps(build_book(title="Chunked", isbn="chunked")).encode()
    status, created = post_in_chunks(service, [body[:20], body[20:]])
    assert (status, created["title"]) == (201, "Chunked")


def test_a_chunked_body_is_refused_beyond_the_limit(service: Service) -> None:
    for megabytes in (2, 40):
        status, response = post_in_chunks(service, [b" " * 1024 * 1024] * megabytes)
        assert (status, response) == (413, {"detail": "The body is over 1048576 bytes."})


def test_a_truncated_body_is_not_stored(service: Service) -> None:
    body = json.dumps(build_book(isbn="cut off")).encode()
    head = f"POST /api/books HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body) + 50}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", urlsplit(service.url).port or 0), timeout=60) as connection:
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        response = connection.makefile("rb").read()
    with service.open_client() as client:
        assert client.post("/api/books", content=body).status_code == 201
    assert b" 201 " not in response


def test_a_refused_body_does_not_cost_the_connection(service: Service) -> None:
    headers = {"Content-Type": "text/plain"}
    with service.open_client() as client:
        for megabytes, status in ((1, 415), (3, 413), (20, 413)) * 4:
            body = b" " * megabytes * 1024 * 1024
            assert client.post("/api/books", content=body, headers=headers).status_code == status
            assert client.get("/api/books?limit=1").status_code == 200


def test_a_port_in_use_is_reported(service: Service) -> None:
    port = urlsplit(service.url).port
    start = run_forked(os.environ | {"DATABASE_URL": service.database_url, "PORT": str(port)}, "serve")
    assert (start.returncode, start.stdout) == (1, "")
    assert start.stderr == f"CommandError: Port {port} of 127.0.0.1 is in use. Set PORT to another one.\n"


def test_the_server_stops_on_a_signal(tmp_path: Path) -> None:
    """Also while one of its workers is still starting, which the server would kill after ten seconds."""
    with serve_library(tmp_path, WEB_CONCURRENCY="2") as service:
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(timeout=9) == 0
        assert "Traceback" not in service.log.read_text()
        with pytest.raises(httpx.ConnectError):
            httpx.get(service.url)


def test_the_server_stops_when_a_terminal_interrupts_all_its_processes(tmp_path: Path) -> None:
    with serve_library(tmp_path) as service:
        os.killpg(service.process.pid, signal.SIGINT)
        assert service.process.wait(timeout=9) == 0
        assert "Unexpected exit" not in service.log.read_text()


WORKER = """
import os, signal
from library_site.deployment.server import load_application
worker = os.fork()
if worker == 0:
    load_application()
    os.kill(os.getpid(), signal.SIGINT)
    os.write(1, b"goes on, ")
    os.kill(os.getpid(), signal.SIGTERM)
print(os.waitpid(worker, 0)[1] == signal.SIGTERM)
"""


def test_a_worker_goes_on_when_a_terminal_interrupts_it(service: Service) -> None:
    """The server, which is interrupted too, ends its workers: one that ends before looks like a crash."""
    assert run_in_shell(service.database_url, WORKER) == "goes on, True\n"


def test_commands_beside_the_server_stop_with_it_when_its_terminal_closes(tmp_path: Path) -> None:
    with copy_seeded_database(tmp_path) as database_url, reserve_port() as port, (tmp_path / "log").open("w") as log:
        environment = os.environ | {"DATABASE_URL": database_url, "PORT": str(port), "WEB_CONCURRENCY": "1"}
        command = ["serve", "--with", "deliver_webhooks", "--with", "run_operations"]
        server = ForkedProcess(environment, *command, output=log.fileno(), errors=log.fileno())
        wait_for_port(server, port)
        wait_until(lambda: len(list_children(server.pid)) == 3)
        children = list_children(server.pid)
        server.send_signal(signal.SIGHUP)
        assert server.wait(30) == 0
        assert not any(is_running(child) for child in children)
    assert (tmp_path / "log").read_text().endswith("Ctrl-C stops it.\nThe library has stopped.\n")


# Python runs a file of this name at its start: threads of the server would end after one second, not after thirty.
IMPATIENT_SERVER = """
from granian.server.common import AbstractServer
build = AbstractServer.__init__
def build_impatient(server, *arguments, **options):
    build(server, *arguments, **options)
    server.on_startup(lambda: setattr(server, "blocking_threads_idle_timeout", 1))
AbstractServer.__init__ = build_impatient
"""


def test_a_burst_leaves_its_threads_and_their_connections(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(IMPATIENT_SERVER)
    with serve_library(tmp_path, PYTHONPATH=str(tmp_path)) as service:
        run_concurrently(service, [lambda client: client.get("/api/books")] * 24)
        workers = list_children(service.process.pid)
        threads = [list_threads(worker) for worker in workers]
        with pytest.raises(subprocess.TimeoutExpired):
            service.process.wait(timeout=3)
        assert list_children(service.process.pid) == workers
        assert [list_threads(worker) for worker in workers] == threads
        assert "Unexpected exit" not in service.log.read_text()


def list_threads(process: int) -> set[Path]:
    return set(Path(f"/proc/{process}/task").iterdir())


def test_the_workers_share_what_the_server_has_loaded(service: Service) -> None:
    """Pages that were written, and that two processes have, come from before the fork."""
    worker = list_children(service.process.pid)[0]
    sizes = dict(re.findall(r"^(\w+): +(\d+) kB", Path(f"/proc/{worker}/smaps_rollup").read_text(), re.MULTILINE))
    assert int(sizes["Shared_Dirty"]) > 10 * 1024


def test_a_command_that_dies_beside_the_server_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "manage.py").write_text("import signal, sys\nprint(sys.argv[1:], flush=True)\nsignal.pause()\n")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "manage.py"), "serve"])
    monkeypatch.setattr("library_site.management.commands.serve.RESTART_PAUSE", 0.01)
    runner = CommandRunner("run_operations")
    first = runner.process
    runner.start()
    first.kill()
    wait_until(lambda: runner.process is not first)
    assert "run_operations has ended with -9. It starts again in 0 seconds." in caplog.text
    assert runner.process.poll() is None
    runner.stop()
    assert runner.process.wait(timeout=9) == -signal.SIGTERM
    runner.join(timeout=9)
    assert not runner.is_alive()


def test_a_command_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    environment = os.environ | {"DATABASE_URL": f"sqlite:///{tmp_path}/none", "PORT": "1"}
    start = run_forked(environment, "serve", "--with", "deliver_webhoks")
    assert (start.returncode, start.stderr) == (1, "CommandError: deliver_webhoks is no command.\n")


def test_a_server_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    """Its worker would keep the port and serve on, and so would a command."""
    with copy_seeded_database(tmp_path) as database_url, reserve_port() as port, (tmp_path / "log").open("w") as log:
        environment = os.environ | {"DATABASE_URL": database_url, "PORT": str(port), "WEB_CONCURRENCY": "1"}
        command = ["serve", "--with", "run_operations", "--with", "deliver_webhooks"]
        server = ForkedProcess(environment, *command, output=log.fileno(), errors=log.fileno())
        wait_for_port(server, port)
        wait_until(lambda: len(list_children(server.pid)) == 3)
        first, *others = list_children(server.pid)
        os.kill(first, signal.SIGKILL)
        message = "library_site.process: run_operations has ended with -9. It starts again in 5 seconds."
        wait_until(lambda: message in (tmp_path / "log").read_text())
        server.send_signal(signal.SIGKILL)
        wait_until(lambda: not any(is_running(child) for child in others))
        server.wait()


def test_a_process_whose_server_was_killed_before_it_began_ends() -> None:
    def begin() -> None:
        # As a worker does: other tests of this process may have set a handler.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end_with_parent(0)

    process = multiprocessing.get_context("fork").Process(target=begin)
    process.start()
    process.join(9)
    assert process.exitcode == -signal.SIGTERM


def is_running(process: int) -> bool:
    """A process that nobody waits for stays as a zombie, where the first process of the machine does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.usefixtures("unshare")
def test_the_first_process_of_a_container_stops_on_a_signal_from_the_beginning(tmp_path: Path) -> None:
    """The system ignores a signal for which that process has no handler."""
    database_url = f"sqlite:///{tmp_path}/library.sqlite3"
    call = [*UNSHARE, "--pid", "--fork", "--kill-child", sys.executable, "-X", "importtime", "manage.py", "serve"]
    environment = os.environ | {"DATABASE_URL": database_url}
    with subprocess.Popen(call, env=environment, stderr=subprocess.PIPE, text=True) as unshare:
        assert unshare.stderr
        # The library begins to load.
        assert any("django.utils" in line for line in unshare.stderr)
        [first] = list_children(unshare.pid)
        os.kill(first, signal.SIGTERM)
        rest = unshare.stderr.read()
    assert unshare.returncode == 128 + signal.SIGTERM
    assert "library_site.urls" not in rest


@contextmanager
def send_unfinished_bodies(service: Service, clients: int, count: int) -> Iterator[None]:
    """Opens connections whose bodies do not arrive, as if through a proxy that passes bodies on while they arrive."""
    with ExitStack() as stack:
        for number in range(count):
            address = urlsplit(service.url)
            connection = stack.enter_context(socket.create_connection((address.hostname, address.port)))
            head = f"POST /api/books HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 1000\r\n"
            connection.sendall(f"{head}X-Forwarded-For: 192.0.2.{number % clients}\r\n\r\n{{".encode())
        yield


def test_unfinished_bodies_refuse_nobody_elses_writes(tmp_path: Path) -> None:
    with (
        serve_library(tmp_path, NUM_PROXIES="1", WEB_THREADS="8", LIBRARY_ACCESS="open") as service,
        send_unfinished_bodies(service, clients=2, count=12),
        service.open_client() as client,
    ):
        responses = [client.post("/api/books", json=build_book(isbn=f"{number}")) for number in range(10)]
        assert [response.status_code for response in responses] == [201] * 10
        assert client.post("/accounts/login/", data={}).status_code == 403
