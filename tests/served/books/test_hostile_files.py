"""Hostile files: the process that reads them reads each, or refuses it, within its limits of memory and time."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from socket import send_fds, socketpair
from typing import IO

import pytest
from django.conf import settings

from books.files.formats.records import UnreadableFile
from books.files.reader import client
from books.files.reader.client import StoredFile, iter_file_records
from tests.support.hostile_files import HOSTILE_FILES, LIMIT

SIZE = 350_000
# The command in a copy of a process that has loaded the formats: it starts in a tenth of the time.
COPIED_READER = """
import json, os
from socket import recv_fds, socket
from django.apps import apps
from django.conf import settings
settings.configure()
apps.populate(())
from books.files.reader.__main__ import limit_resources
from books.files.reader.tasks import write_results
requests = socket(fileno=0)
while job := recv_fds(requests, 2**16, 2):
    if not job[1]:
        break
    if os.fork() == 0:
        options = json.loads(job[0])
        limit_resources(options["cpu_seconds"], options["memory_bytes"])
        with open(job[1][0], "rb") as stream, open(job[1][1], "wb") as output:
            write_results(options, stream, output)
        os._exit(0)
    for descriptor in job[1]:
        os.close(descriptor)
    os.wait()
"""


def count_good_records(name: str, data: bytes) -> int | str:
    """Returns how many records the process finds that reads files of strangers, or why it refuses the file."""
    parts = {0: data}
    try:
        records = iter_file_records(StoredFile(len(data), "", lambda number: parts.get(number, b""), format=name))
        return sum(not record.problem for record in records)
    except UnreadableFile as error:
        return str(error)


@pytest.fixture
def start_copied_reader() -> Iterator[Callable[..., AbstractContextManager[IO[bytes]]]]:
    ours, theirs = socketpair()

    @contextmanager
    def start(job: str, file: IO[bytes]) -> Iterator[IO[bytes]]:
        reading, writing = os.pipe()
        send_fds(ours, [job.encode()], [file.fileno(), writing])
        os.close(writing)
        with os.fdopen(reading, "rb") as output:
            yield output

    call = [sys.executable, "-c", COPIED_READER]
    with theirs, subprocess.Popen(call, stdin=theirs.fileno(), stderr=subprocess.DEVNULL, cwd=settings.BASE_DIR), ours:
        theirs.close()
        yield start


def test_the_process_holds_hostile_files_by_its_limits(
    monkeypatch: pytest.MonkeyPatch, start_copied_reader: Callable[..., AbstractContextManager[IO[bytes]]]
) -> None:
    monkeypatch.setattr(client, "start_reader", start_copied_reader)
    monkeypatch.setattr(client, "MEMORY_BYTES", 2**28)
    monkeypatch.setattr(client, "CPU_SECONDS_PER_MIB", 0)
    # On a busy machine it would be ended for the time that it takes.
    monkeypatch.setattr(client, "WAITING_FACTOR", 1_000)
    results: dict[str, int | str] = {}
    for name, (format, build, expected) in HOSTILE_FILES.items():
        monkeypatch.setattr(client, "CPU_SECONDS", 1 if expected == LIMIT else 2)
        results[name] = count_good_records(format, build(SIZE))
    assert results == {name: expected for name, (_format, _build, expected) in HOSTILE_FILES.items()}
