"""The command that reads files of strangers, and how it ends when a file takes too much."""

import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import IO, Any

import pytest
from django.utils.translation import override

from books.files.formats.records import COLUMNS, MAX_RECORD_CHARACTERS, NumberText, Record, Table, UnreadableFile
from books.files.formats.registry import FORMATS
from books.files.reader import client, tasks
from books.files.reader.client import ReaderFailed, StoredFile, iter_lines, iter_output, start_reader
from tests.support.book_files import build_exported_book, write_books

CHUNK_BYTES = 1_000
HEADER = b"title,author,year,isbn,genre\n"
ROW = b"A,B,1,2,C\n"
LIMIT_MESSAGE = "takes too much time or memory to be read"
LIMITS = {
    "RLIMIT_CORE": (0, 0),
    "RLIMIT_CPU": (20, 21),
    "RLIMIT_AS": (3 * 2**29, 3 * 2**29),
    "RLIMIT_FSIZE": (0, 0),
    "RLIMIT_NOFILE": (64, 64),
}
STARTED = b'["started", ""]\n'


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> "list[subprocess.Popen[bytes]]":
    """Files are read by processes, as in production. Returns those that were started."""
    started: list[subprocess.Popen[bytes]] = []

    class RememberedProcess(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(client, "start_reader", start_reader)
    monkeypatch.setattr(subprocess, "Popen", RememberedProcess)
    return started


def build_source(content: bytes, **options: Any) -> StoredFile:
    def read_chunk(number: int) -> bytes:
        return content[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]

    return StoredFile(len(content), "", read_chunk, **options)


def test_a_process_reads_a_file_and_sees_nothing_else(
    processes: "list[subprocess.Popen[bytes]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "secret")
    with closing(client.iter_file_records(build_source(HEADER + ROW * 10_000))) as records:
        assert next(records).values["isbn"] == "2"
        folder = Path(f"/proc/{processes[0].pid}")
        variables = (folder / "environ").read_bytes().split(b"\0")
        assert {variable.partition(b"=")[0] for variable in variables} == {b"LANG", b"PYTHONDONTWRITEBYTECODE", b""}
        # The file, the results, and what it says of its own faults.
        assert {path.name for path in (folder / "fd").iterdir()} == {"0", "1", "2"}
        assert (folder / "fd/0").readlink().name.endswith("(deleted)")
        limits = {name: resource.prlimit(processes[0].pid, getattr(resource, name)) for name in LIMITS}
    assert processes[0].returncode == -signal.SIGKILL
    assert limits == LIMITS


def test_it_says_in_the_language_of_who_asks_why_a_file_cannot_be_read(
    processes: "list[subprocess.Popen[bytes]]",
) -> None:
    with override("de"), pytest.raises(UnreadableFile, match="Zeile 3: Ein Anführungszeichen"):
        client.read_size(build_source(HEADER + ROW + b'"'))


def test_it_dies_of_a_file_that_takes_too_long(
    processes: "list[subprocess.Popen[bytes]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CPU_SECONDS", 1)
    monkeypatch.setattr(client, "CPU_SECONDS_PER_MIB", 0)
    # On a busy machine it would be ended for the time that it takes.
    monkeypatch.setattr(client, "WAITING_FACTOR", 1_000)
    parts = {0: HEADER + ROW * 2_000_000}
    with pytest.raises(UnreadableFile, match=LIMIT_MESSAGE):
        client.read_size(StoredFile(2**25, "utf-8", lambda number: parts.get(number, b"")))
    assert processes[0].returncode == -signal.SIGXCPU


def test_it_gives_up_a_file_that_takes_too_much_memory(
    processes: "list[subprocess.Popen[bytes]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    # With less, the module of the format could not even be imported.
    monkeypatch.setattr(client, "MEMORY_BYTES", 2**27)
    with pytest.raises(UnreadableFile, match=LIMIT_MESSAGE):
        client.read_preview(build_source(b"x" * 2**27))


def test_who_stops_its_group_does_not_spoil_the_file(processes: "list[subprocess.Popen[bytes]]") -> None:
    with closing(client.iter_file_records(build_source(HEADER + ROW * 10_000))) as records:
        next(records)
        os.kill(processes[0].pid, signal.SIGTERM)
        assert sum(1 for _ in records) == 9_999


def test_it_ends_when_nobody_reads_what_it_found(processes: "list[subprocess.Popen[bytes]]") -> None:
    """Also while it only counts, which would take longer: it writes a sign now and then."""
    with TemporaryFile() as file:
        file.write(HEADER + ROW * 3_000_000)
        file.flush()
        job = {"task": "count", "encoding": "", "name": "", "format": "csv", "files": [], "language": "en"}
        limits = {"cpu_seconds": 2, "memory_bytes": 2**31, "locale_paths": []}
        with start_reader(json.dumps({**job, **limits}), file) as output:
            assert output.readline() == STARTED
            output.close()
            assert processes[0].wait(60) == -signal.SIGPIPE


def test_each_format_comes_through() -> None:
    isbns = [f"isbn-{number}" for number in range(7)]
    for name in FORMATS:
        source = build_source(write_books(name, [build_exported_book(id=n, isbn=isbn) for n, isbn in enumerate(isbns)]))
        head = client.read_preview(source)
        assert (head.format, len(head.rows), client.read_size(source)) == (name, 5, (7, ""))
        assert [record.values["isbn"] for record in client.iter_file_records(source)] == isbns, name


def test_a_record_is_the_same_on_the_other_side(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        Record(1, {"isbn": NumberText("9E+12"), "title": "T"}, None, "row: wrong", ("isbn: doubtful",)),
        Record(2, {"title": "bytes that cannot be decoded: \udce9", "author": "NUL: \0"}, None),
        Record(3, {"year": 10**40, "id": None, "available": True, "genre": [{"a": [1.5]}]}, None),
        Record(4, {}, None, "record: wrong"),
    ]
    monkeypatch.setattr(tasks, "read_table", lambda *_args: (FORMATS["csv"], Table(COLUMNS, iter(records), "")))
    found = list(client.iter_file_records(build_source(HEADER)))
    assert found == records
    types = [[type(value) for value in record.values.values()] for record in records]
    assert [[type(value) for value in record.values.values()] for record in found] == types


def test_columns_that_would_fill_pages_are_refused() -> None:
    allowed = b",".join(b"c%d" % number for number in range(1_000))
    assert len(client.read_preview(build_source(allowed + b"\n" + allowed)).columns) == 1_000
    for header, reason in ((allowed + b",x", "more than 1,000 columns"), (b"x" * 100_001, "names of the columns")):
        with pytest.raises(UnreadableFile, match=reason):
            client.read_preview(build_source(header))


def test_more_records_than_an_operation_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MAX_RECORDS", 2)
    assert client.read_size(build_source(HEADER + ROW * 2)) == (2, "")
    with pytest.raises(UnreadableFile, match="more than 2 records"):
        client.read_size(build_source(HEADER + ROW * 3))


def test_a_record_that_is_too_long_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its names count, too, and what is nested in its values."""
    monkeypatch.setattr(tasks, "MAX_RECORD_CHARACTERS", 20)
    lines = [
        b'{"isbn": "1"}',
        b'{"isbn": "%b"}' % (b"2" * 17),
        b'{"isbn": ["%b"]}' % (b"3" * 17),
        b'{"%b": 4}' % (b"x" * 21),
    ]
    records = list(client.iter_file_records(build_source(b"\n".join([*lines, b'{"isbn": "%b"}' % (b"5" * 16)]))))
    long = "record: It has more than 20 characters."
    assert [record.problem for record in records] == ["", long, long, long, ""]
    assert [record.values for record in records[1:4]] == [{}] * 3


def test_rejected_records_come_back_with_their_reasons(processes: "list[subprocess.Popen[bytes]]") -> None:
    rows = b"".join(b"T%d\xe9,B,1,2,C\n" % number for number in range(1, 7))
    name, *pieces = client.iter_rejected_parts(build_source(HEADER + rows), iter([(2, "first"), (5, "zweite „“")]))
    assert name == b"csv"
    lines = b"".join(pieces).splitlines()[1:]
    assert lines == [b"3,first,T2\xe9,B,1,2,C", "6,zweite „“,".encode() + b"T5\xe9,B,1,2,C"]


def pretend(output: bytes, jobs: list[Any] | None = None) -> Callable[..., AbstractContextManager[IO[bytes]]]:
    """Returns what starts a command that is compromised, or dead: it only writes this."""

    @contextmanager
    def start(job: str, *_files: IO[Any]) -> Iterator[IO[bytes]]:
        [] if jobs is None else jobs.append(json.loads(job))
        with TemporaryFile() as file:
            file.write(output)
            file.seek(0)
            yield file

    return start


@pytest.mark.parametrize(
    ("output", "error", "message"),
    [
        (STARTED, UnreadableFile, LIMIT_MESSAGE),
        (STARTED + b'["end"', UnreadableFile, LIMIT_MESSAGE),
        (STARTED + b'["refused", ""]\n', UnreadableFile, LIMIT_MESSAGE),
        (STARTED + b'["failed", "KeyError: x"]\n', ReaderFailed, "KeyError: x"),
        (b"", ReaderFailed, "did not start"),
    ],
)
def test_a_command_that_dies_is_the_fault_of_the_file_once_it_has_started(
    monkeypatch: pytest.MonkeyPatch, output: bytes, error: type[Exception], message: str
) -> None:
    monkeypatch.setattr(client, "start_reader", pretend(output))
    with pytest.raises(error, match=message):
        client.read_size(build_source(HEADER))


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_a_command_whose_memory_or_stack_ends_blames_the_file(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_args: Any) -> Iterator[bytes]:
        raise error

    monkeypatch.setitem(tasks.READER_TASKS, "count", fail)
    with pytest.raises(UnreadableFile, match=LIMIT_MESSAGE):
        client.read_size(build_source(HEADER))


@pytest.mark.parametrize(("size", "seconds"), [(1, 20), (2**20, 20), (2**20 + 1, 30)])
def test_a_large_file_may_take_longer(monkeypatch: pytest.MonkeyPatch, size: int, seconds: int) -> None:
    jobs: list[Any] = []
    monkeypatch.setattr(client, "start_reader", pretend(STARTED + b'["end", ""]\n', jobs))
    assert list(client.iter_file_records(build_source(HEADER)._replace(size=size))) == []
    assert jobs[0]["cpu_seconds"] == seconds


def test_a_line_without_bounds_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_LINE_BYTES", 3)
    assert [*iter_lines([b"ab", b"c\nde\n\n"])] == [b"abc", b"de", b""]
    lines = iter_lines(b"x" for _number in iter(int, 1))
    with pytest.raises(UnreadableFile, match=LIMIT_MESSAGE):
        next(lines)


def test_the_longest_record_fits_into_a_line() -> None:
    """A character beyond the basic plane takes twelve bytes in JSON."""
    text = "\U0001d11e" * MAX_RECORD_CHARACTERS
    assert len(tasks.encode_line("result", (1, {"title": text}))) * 2 < client.MAX_LINE_BYTES


def test_a_command_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the time counts in which it is waited for. Who waits is told every few seconds, to renew a lease."""
    clock, signs = [0.0], list[float]()
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(client, "select", SimpleNamespace(poll=lambda: SilentPoll(clock), POLLIN=0))
    with TemporaryFile() as output:
        output.write(b"x")
        output.seek(0)
        pieces = iter_output(output, 15, lambda: signs.append(clock[0]))
        assert next(pieces) == b"x"
        clock[0] += 1_000
        with pytest.raises(UnreadableFile, match=LIMIT_MESSAGE):
            next(pieces)
    assert (signs, clock[0]) == ([1_002, 1_008, 1_014], 1_016)


class SilentPoll:
    """Waits a second each time, and finds something to read once."""

    def __init__(self, clock: list[float]) -> None:
        self.clock, self.found = clock, [True]

    def register(self, *_args: Any) -> None:
        pass

    def poll(self, _milliseconds: float) -> list[bool]:
        self.clock[0] += 1
        found, self.found = self.found, []
        return found
