"""The services that are compared, and how each is started and stopped."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PEERS_VENV = ROOT / ".venv-bench"
REQUIREMENTS = ROOT / "requirements" / "bench.txt"
FASTIFY_PEER = ROOT / "benchmarks" / "peers" / "fastify"
COMPARED_FIELDS = ("id", "title", "author", "year", "isbn", "genre", "available", "created_at")
START_TIMEOUT = 60
# The library takes up to ten seconds.
STOP_TIMEOUT = 20


class StartFailed(Exception):
    """A competitor ended, or did not answer, before the first measurement."""


class UnexpectedResponse(Exception):
    """A competitor does not answer with the books that all of them must have."""


@dataclass(frozen=True)
class Competitor:
    """One that keeps the library's `promises` has a copy of the library's database, and is compared in its writes.

    `settings` are environment variables, `headers` are sent with each request.
    """

    title: str
    command: tuple[str, ...]
    promises: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Server:
    name: str
    port: int
    pid: int


def build_uvicorn_command(module: str) -> tuple[str, ...]:
    options = "--app-dir benchmarks/peers --loop uvloop --http httptools --no-access-log --log-level warning"
    return (str(PEERS_VENV / "bin" / "python"), "-m", "uvicorn", f"{module}:app", *options.split())


OURS, OURS_FETCH, OURS_LIMITED = LIBRARIES = ("ours", "ours-fetch", "ours-limited")
EQUAL_FASTAPI = "fastapi-equal"
FASTIFY = "fastify"
LIBRARY_COMMAND = (sys.executable, "manage.py", "serve")
MEASURED_COMMAND = (*LIBRARY_COMMAND, "--with", "deliver_webhooks")
# What Node's fetch sends, and what a load balancer adds.
FETCH_HEADERS = {
    "Accept": "*/*",
    "Accept-Language": "*",
    "Sec-Fetch-Mode": "cors",
    "User-Agent": "node",
    "Accept-Encoding": "gzip, deflate",
    "X-Forwarded-For": "192.0.2.7",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Port": "443",
    "X-Amzn-Trace-Id": "Root=1-67891233-abcdef012345678912345678",
}
COMPETITORS = {
    "fastapi": Competitor("FastAPI", build_uvicorn_command("fastapi_asyncpg")),
    "litestar": Competitor("Litestar", build_uvicorn_command("litestar_asyncpg")),
    EQUAL_FASTAPI: Competitor("FastAPI, equal", build_uvicorn_command("fastapi_equal"), promises=True),
    FASTIFY: Competitor("Fastify", ("node", str(FASTIFY_PEER / "server.js"))),
    OURS: Competitor("Library API", MEASURED_COMMAND),
    OURS_FETCH: Competitor("Library, fetch", MEASURED_COMMAND, headers=FETCH_HEADERS),
    OURS_LIMITED: Competitor("Library, limited", MEASURED_COMMAND, settings={"API_RATE_LIMIT": "999999999/hour"}),
}


def install_python_peers() -> None:
    """Installs the peers' packages in a virtual environment of their own, again whenever their lock file changes."""
    marker = PEERS_VENV / "installed"
    if marker.exists() and marker.stat().st_mtime >= REQUIREMENTS.stat().st_mtime:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(PEERS_VENV)], check=True)
    pip = [str(PEERS_VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--require-hashes", "-r", str(REQUIREMENTS)], check=True)
    marker.touch()


def is_installed(name: str) -> bool:
    """`make bench` installs Fastify with npm. All others are installed here."""
    return name != FASTIFY or bool(shutil.which("node") and (FASTIFY_PEER / "node_modules" / ".installed").exists())


def start_competitor(name: str, database_url: str) -> AbstractContextManager[Server]:
    return start_server(name, COMPETITORS[name].command, database_url, **COMPETITORS[name].settings)


def start_library(database_url: str, **settings: str) -> AbstractContextManager[Server]:
    """Starts the library without its delivery worker; `settings` are environment variables."""
    return start_server(OURS, LIBRARY_COMMAND, database_url, **settings)


@contextmanager
def start_server(name: str, command: Sequence[str], database_url: str, **settings: str) -> Iterator[Server]:
    port = find_free_port()
    variables = build_environment(database_url) | {"PORT": str(port), "UVICORN_PORT": str(port)} | settings
    process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_for_response(process, name, lambda: check_books(name, port))
        yield Server(name, port, process.pid)
    finally:
        stop_process(process)


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def build_environment(database_url: str) -> dict[str, str]:
    """The same variables for all. Nothing is inherited: a developer's DEBUG or HTTPS would distort the figures.

    From the level `warning` on the library logs no requests; the options of the peers' servers say the same.
    """
    return {
        "PATH": os.environ["PATH"],
        "HOST": "127.0.0.1",
        "UVICORN_HOST": "127.0.0.1",
        "WEB_CONCURRENCY": "2",
        "DATABASE_URL": database_url,
        "SECRET_KEY": secrets.token_urlsafe(50),
        "LOG_LEVEL": "warning",
    }


def wait_for_response(process: subprocess.Popen[bytes], name: str, send_request: Callable[[], Any]) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(ConnectionRefusedError):
            send_request()
            return
        time.sleep(0.1)
    raise StartFailed(name)


def check_books(name: str, port: int) -> None:
    """Checks the bodies: wrk checks only the status, and accepts a redirect. Raises UnexpectedAnswer."""
    book, page = fetch_json(port, "/api/books/1"), fetch_json(port, "/api/books?limit=10")
    if set(book) != set(COMPARED_FIELDS) or len(page) != 10:
        raise UnexpectedResponse(f"{name}: {book}, and {len(page)} books where 10 were asked for")


def fetch_json(port: int, path: str) -> Any:
    connection = HTTPConnection("127.0.0.1", port, timeout=START_TIMEOUT)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status != 200:
        raise UnexpectedResponse(f"{path}: {response.status} {body!r}")
    return json.loads(body)


def stop_process(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole process group: otherwise workers outlive a killed parent."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_TIMEOUT)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
