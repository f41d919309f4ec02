"""Starts the command that reads an untrusted file, and stops it when it takes too long."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from math import ceil
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple, cast

import msgspec
from django.conf import settings
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from books.files.formats.records import NumberText, Record, UnreadableFile

# Processor seconds of the command: a minimum for the smallest file, and more for each MiB. A slow format on a
# slow machine takes a tenth of it.
CPU_SECONDS, CPU_SECONDS_PER_MIB = 10, 10
# A full sheet takes 1 GiB, including the interpreter.
MEMORY_BYTES = 3 * 2**29
# On a busy machine it gets only a part of the processor time.
WAITING_FACTOR = 4
# Seconds between two checks of a silent command, and between two calls of `keep_alive`.
TICK, KEEP_ALIVE_INTERVAL = 1.0, 5.0
# A record of maximum size has twelve bytes of JSON for each character.
MAX_LINE_BYTES = 32 * 2**20
# The chunks between two calls of `keep_alive` while a file is copied.
CHUNKS_BETWEEN_SIGNS = 64


class ReaderFailed(Exception):
    """The command failed because of a bug. The message describes it."""


def build_limit_error() -> UnreadableFile:
    """Returns the error for a file that exceeds a limit."""
    return UnreadableFile(_("The file takes too much time or memory to be read. Divide it, or export it anew."))


class StoredFile(NamedTuple):
    """A file in chunks. Without a `format`, its first bytes and its `name` determine it.

    `read_chunk` returns the chunk with a number, empty after the last one. `keep_alive` is called every few seconds.
    """

    size: int
    encoding: str
    read_chunk: Callable[[int], bytes]
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


def read_preview(source: StoredFile) -> FilePreview:
    """Raises UnreadableFile, ReaderFailed."""
    [head] = run_reader(source, "preview")
    return msgspec.convert(head, FilePreview)


def read_size(source: StoredFile) -> tuple[int, str]:
    """Reads the whole file. Returns how many records it has, and the note about what of it no record shows.

    Raises UnreadableFile, ReaderFailed.
    """
    *_counts, (count, left_out) = run_reader(source, "count")
    return count, left_out


def iter_file_records(source: StoredFile) -> Generator[Record]:
    """Yields the records without their raw form. Raises UnreadableFile, ReaderFailed."""
    with closing(run_reader(source, "records")) as results:
        for line, values, numbers, problem, warnings, number in results:
            values.update((name, NumberText(values[name])) for name in numbers)
            yield Record(line, values, None, problem, tuple(warnings), number)


def iter_rejected_parts(source: StoredFile, reasons: Iterable[tuple[int, str]]) -> Generator[bytes]:
    """Yields the name of the format, then the parts of a file with the records at these positions and their reasons.

    Raises UnreadableFile, ReaderFailed.
    """
    with TemporaryFile("w+") as file:
        file.writelines(f"{json.dumps(reason)}\n" for reason in reasons)
        file.seek(0)
        for text in run_reader(source, "rejected", file):
            yield text.encode("utf-8", "surrogateescape")


def run_reader(source: StoredFile, task: str, *files: IO[str]) -> Generator[Any]:
    """Yields the results of the command, which reads these files, too.

    Raises UnreadableFile, also if it is killed or takes too long, and ReaderFailed.
    """
    cpu_seconds = CPU_SECONDS + CPU_SECONDS_PER_MIB * ceil(source.size / 2**20)
    job = {
        "task": task,
        "encoding": source.encoding,
        "name": source.name,
        "format": source.format,
        "files": [file.fileno() for file in files],
        "cpu_seconds": cpu_seconds,
        "memory_bytes": MEMORY_BYTES,
        "language": get_language() or settings.LANGUAGE_CODE,
        "locale_paths": [str(path) for path in settings.LOCALE_PATHS],
    }
    kind = ""
    with copy_file(source) as file, start_reader(json.dumps(job), file, *files) as output:
        for line in iter_lines(iter_output(output, WAITING_FACTOR * cpu_seconds, source.keep_alive)):
            kind, result = json.loads(line)
            if kind == "end":
                return
            if kind == "refused":
                raise UnreadableFile(result) if result else build_limit_error()
            if kind == "failed":
                raise ReaderFailed(result)
            if kind == "result":
                yield result
    # What happens before it starts is not the fault of the file.
    raise build_limit_error() if kind else ReaderFailed("It did not start")


@contextmanager
def copy_file(source: StoredFile) -> Iterator[IO[bytes]]:
    """Copies the file from the database, to which the command has no access."""
    with TemporaryFile() as file:
        for number in count():
            if not (chunk := source.read_chunk(number)):
                break
            file.write(chunk)
            if number % CHUNKS_BETWEEN_SIGNS == 0:
                source.keep_alive()
        file.flush()
        yield file


def iter_output(output: IO[bytes], limit: float, keep_alive: Callable[[], None]) -> Iterator[bytes]:
    """Yields what the command writes, in pieces. Only the time counts in which this process waits for it.

    Raises UnreadableFile.
    """
    waited, kept_alive = 0.0, time.monotonic()
    poll = select.poll()
    poll.register(output, select.POLLIN)
    while True:
        began = time.monotonic()
        is_ready = poll.poll(TICK * 1_000)
        now = time.monotonic()
        waited += now - began
        if waited > limit:
            raise build_limit_error()
        if now - kept_alive > KEEP_ALIVE_INTERVAL:
            kept_alive = now
            keep_alive()
        if is_ready:
            piece = os.read(output.fileno(), 2**18)
            if not piece:
                return
            yield piece


def iter_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the complete lines. Raises UnreadableFile for one that is too long."""
    begun: list[bytes] = []
    for piece in pieces:
        *lines, rest = piece.split(b"\n")
        for line in lines:
            yield b"".join([*begun, line])
            begun = []
        begun.append(rest)
        if sum(map(len, begun)) > MAX_LINE_BYTES:
            raise build_limit_error()


@contextmanager
def start_reader(job: str, file: IO[bytes], *files: IO[str]) -> Iterator[IO[bytes]]:
    """Starts the command without this process's settings, credentials and other open files, and stops it at the end."""
    # A signal to the whole process group must not kill the command: that would look like an invalid file.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "books.files.reader", job],
            stdin=file,
            stdout=subprocess.PIPE,
            pass_fds=[other.fileno() for other in files],
            cwd=settings.BASE_DIR,
            env={"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    with process:
        try:
            yield cast("IO[bytes]", process.stdout)
        finally:
            process.kill()
