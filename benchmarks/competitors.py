"""Who takes part, and how each is started and stopped."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PEERS = ROOT / ".venv-bench"
REQUIREMENTS = ROOT / "requirements" / "bench.txt"
MEMBERS = ("id", "title", "author", "year", "isbn", "genre", "available", "created_at")
SECONDS_TO_START = 60
SECONDS_TO_STOP = 10


class DidNotStart(Exception):
    """A competitor ended, or stayed silent, before the first measurement."""


class AnswersDiffer(Exception):
    """A competitor does not answer with the books of the contract."""


@dataclass(frozen=True)
class Competitor:
    title: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Server:
    name: str
    port: int
    pid: int


def uvicorn(module: str) -> tuple[str, ...]:
    options = ("--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning")
    return (str(PEERS / "bin" / "python"), "-m", "uvicorn", f"{module}:app", "--app-dir", "benchmarks/peers", *options)


OURS = "ours"
COMPETITORS = {
    "fastapi-sync": Competitor("FastAPI + SQLAlchemy, sync", uvicorn("fastapi_sync")),
    "fastapi-async": Competitor("FastAPI + SQLAlchemy, asyncpg", uvicorn("fastapi_async")),
    "litestar": Competitor("Litestar + msgspec + raw asyncpg", uvicorn("litestar_asyncpg")),
    OURS: Competitor("Library API", (sys.executable, "manage.py", "serve")),
}


def install_peers() -> None:
    """The peers' packages stay out of our own environment; they are renewed when their lock file is."""
    done = PEERS / "installed"
    if done.exists() and done.stat().st_mtime >= REQUIREMENTS.stat().st_mtime:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(PEERS)], check=True)
    pip = [str(PEERS / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--require-hashes", "-r", str(REQUIREMENTS)], check=True)
    done.touch()


@contextmanager
def started(name: str, database_url: str, **settings: str) -> Iterator[Server]:
    """`settings` are variables of the environment."""
    port = free_port()
    variables = environment(database_url) | {"PORT": str(port), "UVICORN_PORT": str(port)} | settings
    with running(COMPETITORS[name].command, variables) as process:
        wait_until_it_answers(process, name, lambda: check(name, port))
        yield Server(name, port, process.pid)


@contextmanager
def running(command: Sequence[str], variables: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        stop(process)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(database_url: str) -> dict[str, str]:
    """The same for all, and nothing inherited: a developer's DEBUG or HTTPS would distort the figures."""
    return {
        "PATH": os.environ["PATH"],
        "HOST": "127.0.0.1",
        "UVICORN_HOST": "127.0.0.1",
        "WEB_CONCURRENCY": "2",
        "DATABASE_URL": database_url,
        "SECRET_KEY": secrets.token_urlsafe(50),
        "LOG_LEVEL": "warning",
    }


def wait_until_it_answers(process: subprocess.Popen[bytes], name: str, ask: Callable[[], Any]) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(ConnectionRefusedError):
            ask()
            return
        time.sleep(0.1)
    raise DidNotStart(name)


def check(name: str, port: int) -> None:
    """wrk looks at the status only, and takes a redirect for an answer."""
    book, page = fetch(port, "/api/books/1"), fetch(port, "/api/books?limit=10")
    if set(book) != set(MEMBERS) or len(page) != 10:
        raise AnswersDiffer(f"{name}: {book}, and {len(page)} books where 10 were asked for")


def fetch(port: int, path: str) -> Any:
    connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS_TO_START)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status != 200:
        raise AnswersDiffer(f"{path}: {response.status} {body!r}")
    return json.loads(body)


def stop(process: subprocess.Popen[bytes]) -> None:
    """The group, not the process alone: workers must not outlive a killed parent."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(SECONDS_TO_STOP)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
