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
from tests.support import hostile_files
from tests.support.hostile_files import HOSTILE_FILES

SIZE = 350_000
LIMIT = "The file takes too much time or memory to be read. Divide it, or export it anew."
# How many records without a problem a file has, or why it is refused. The others have none.
HOSTILE_RESULTS: dict[Callable[[int], bytes], int | str] = {
    hostile_files.add_csv_columns: "The file has more than 1,000 columns.",
    hostile_files.pad_csv_cells: 3,
    hostile_files.add_json_members: "The file has more than 1,000 columns.",
    hostile_files.list_json_objects: 25_001,
    hostile_files.nest_json_array: LIMIT,
    hostile_files.space_json_array: "The array is damaged on line 1.",
    hostile_files.pile_accents: LIMIT,
    hostile_files.nest_marc_xml: LIMIT,
    hostile_files.pad_title: 1,
    hostile_files.open_parentheses: 1,
    hostile_files.double_strings: 1,
    hostile_files.repeat_string: LIMIT,
    hostile_files.repeat_authors: 1,
    hostile_files.pad_authors: 1,
    hostile_files.pad_entry_start: 1,
    hostile_files.continue_ris_value: 1,
    hostile_files.number_row: 1,
    hostile_files.place_cells_far_right: LIMIT,
    hostile_files.place_cell_beyond_the_last_column: 1,
    hostile_files.repeat_cells: 1,
    hostile_files.show_shared_text: LIMIT,
    # What a document type defines is not read.
    hostile_files.define_entities: "The first row names no columns.",
    hostile_files.name_outside_entity: "The first row names no columns.",
    hostile_files.pack_otherwise: "It is no workbook that can be read.",
}


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
    builders = [(name, build) for name, builders in HOSTILE_FILES.items() for build in builders]
    results: dict[Callable[[int], bytes], int | str] = {}
    for name, build in builders:
        monkeypatch.setattr(client, "CPU_SECONDS", 1 if HOSTILE_RESULTS.get(build) == LIMIT else 2)
        results[build] = count_good_records(name, build(SIZE))
    assert results == {build: HOSTILE_RESULTS.get(build, 0) for build in results}
