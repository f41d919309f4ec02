"""Starts a reader for an untrusted file, answers its requests, and stops it when it takes too long."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from math import ceil
from socket import socket, socketpair
from typing import NamedTuple

import msgspec
from django.conf import settings
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from books.files.formats.records import Record, UnreadableFile
from books.files.sandbox import messages
from books.files.sandbox.streams import ReadChunk

# Processor seconds of a reader: a minimum for the smallest file, and more for each MiB. A slow format on a
# slow machine takes a tenth of it.
CPU_SECONDS, CPU_SECONDS_PER_MIB = 10, 10
# A full sheet takes 1 GiB, including the interpreter.
MEMORY_BYTES = 3 * 2**29
# On a busy machine a reader gets only a part of the processor time.
WAITING_FACTOR = 4
# Seconds between two checks of a silent reader, and between two calls of `keep_alive`.
TICK, KEEP_ALIVE_INTERVAL = 1.0, 5.0
START_SECONDS = 20.0


class ReaderFailed(Exception):
    """A reader failed because of a bug. The message describes it."""


def build_error_body() -> UnreadableFile:
    """Returns the error for a file that exceeds a limit of its reader."""
    return UnreadableFile(_("The file takes too much time or memory to be read. Divide it, or export it anew."))


class StoredFile(NamedTuple):
    """A file, and what a reader may request about it. Without a `format`, its first bytes and its `name` determine it.

    `list_reasons` returns the next rejected records after a position, with their reasons. `keep_alive` is called every
    few seconds.
    """

    size: int
    chunk_bytes: int
    encoding: str
    read_chunk: ReadChunk
    list_reasons: Callable[[int], Sequence[tuple[int, str]]] = lambda _position: ()
    keep_alive: Callable[[], None] = lambda: None
    name: str = ""
    format: str = ""


class FilePreview(msgspec.Struct, frozen=True):
    """How a file is read, and its first records. `proposed` are other encodings that it may have, likeliest first."""

    format: str
    columns: list[str]
    description: str
    warning: str
    rows: list[list[str]]
    notes: list[str]
    left_out: str = ""
    proposed: list[str] = []


class FileSize(msgspec.Struct, frozen=True):
    """How many records a file has, and the note about what of it no record shows."""

    count: int
    left_out: str


def read_preview(source: StoredFile) -> FilePreview:
    """Raises UnreadableFile, ReaderFailed."""
    return msgspec.json.decode(b"".join(run_reader(source, "head")), type=FilePreview)


def read_size(source: StoredFile) -> FileSize:
    """Reads the whole file. Raises UnreadableFile, ReaderFailed."""
    return msgspec.json.decode(b"".join(run_reader(source, "count")), type=FileSize)


def iter_file_records(source: StoredFile) -> Generator[Record]:
    """Yields the records without their raw form. Raises UnreadableFile, ReaderFailed."""
    with closing(run_reader(source, "records")) as results:
        for content in results:
            yield from messages.decode_records(content)


def iter_rejected_parts(source: StoredFile) -> Generator[bytes]:
    """Yields the name of the format, then the parts of a file with the rejected records.

    Raises UnreadableFile, ReaderFailed.
    """
    return run_reader(source, "rejected")


def run_reader(source: StoredFile, task: str) -> Generator[bytes]:
    """Yields the results of a reader. Raises UnreadableFile, also if it dies or takes too long, and ReaderFailed."""
    cpu_seconds = CPU_SECONDS + CPU_SECONDS_PER_MIB * ceil(source.size / 2**20)
    watch = Watch(WAITING_FACTOR * cpu_seconds, source.keep_alive)
    with start_reader() as connection:
        begin_job(connection, build_job(source, task, cpu_seconds))
        while True:
            kind, content = receive_response(connection, watch)
            if kind == messages.RESULT:
                yield content
            elif kind == messages.NEED_CHUNK:
                send_response(connection, messages.CHUNK, source.read_chunk(int(content)))
            elif kind == messages.NEED_REASONS:
                reasons = json.dumps([*source.list_reasons(int(content))]).encode()
                send_response(connection, messages.REASONS, reasons)
            else:
                require_good_end(kind, content.decode(errors="replace"))
                return


def begin_job(connection: socket, job: bytes) -> None:
    """Raises ReaderFailed if the reader does not start, because that is not the fault of a file."""
    connection.settimeout(START_SECONDS)
    try:
        messages.send(connection, messages.JOB, job)
        messages.receive(connection, refuse_start)
    except (EOFError, OSError) as error:
        raise ReaderFailed("It did not start") from error
    connection.settimeout(TICK)


def refuse_start() -> None:
    raise ReaderFailed("It did not start in time")


def build_job(source: StoredFile, task: str, cpu_seconds: int) -> bytes:
    job = {
        "task": task,
        "size": source.size,
        "chunk_bytes": source.chunk_bytes,
        "encoding": source.encoding,
        "name": source.name,
        "format": source.format,
        "cpu_seconds": cpu_seconds,
        "memory_bytes": MEMORY_BYTES,
        "language": get_language() or settings.LANGUAGE_CODE,
        "locale_paths": [str(path) for path in settings.LOCALE_PATHS],
    }
    return json.dumps(job).encode()


def send_response(connection: socket, kind: bytes, content: bytes) -> None:
    """Raises UnreadableFile if the reader is dead."""
    try:
        messages.send(connection, kind, content)
    except OSError as error:
        raise build_error_body() from error


def receive_response(connection: socket, watch: "Watch") -> tuple[bytes, bytes]:
    """Raises UnreadableFile if the reader is dead, or takes too long."""
    try:
        with watch.measure():
            return messages.receive(connection, watch.tick)
    except (EOFError, OSError, messages.BadMessage) as error:
        raise build_error_body() from error


def require_good_end(kind: bytes, message: str) -> None:
    """Raises UnreadableFile, ReaderFailed."""
    if kind == messages.REFUSED:
        raise UnreadableFile(message) if message else build_error_body()
    if kind != messages.END:
        raise ReaderFailed(message)


class Watch:
    """Measures the time spent waiting for a reader, without the time that the reader waits for this process."""

    def __init__(self, limit: float, keep_alive: Callable[[], None]) -> None:
        self.limit, self.keep_alive = limit, keep_alive
        self.waited = 0.0
        self.began = self.kept_alive = time.monotonic()

    @contextmanager
    def measure(self) -> Iterator[None]:
        self.began = time.monotonic()
        yield
        self.tick()
        self.waited += time.monotonic() - self.began

    def tick(self) -> None:
        """Raises UnreadableFile."""
        now = time.monotonic()
        if self.waited + now - self.began > self.limit:
            raise build_error_body()
        if now - self.kept_alive > KEEP_ALIVE_INTERVAL:
            self.kept_alive = now
            self.keep_alive()


@contextmanager
def start_reader() -> Iterator[socket]:
    """Starts a process without this one's settings, credentials and open files, and stops it at the end."""
    ours, theirs = socketpair()
    with ours, theirs:
        process = start_process(theirs)
        theirs.close()
        try:
            yield ours
        finally:
            process.kill()
            process.wait()


def start_process(connection: socket) -> "subprocess.Popen[bytes]":
    # A signal to the whole process group must not kill the reader: that would look like an invalid file.
    ended_by = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    earlier_mask = signal.pthread_sigmask(signal.SIG_BLOCK, ended_by)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "books.files.sandbox.reader"],
            stdin=connection.fileno(),
            stdout=subprocess.DEVNULL,
            cwd=settings.BASE_DIR,
            env={"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier_mask)
