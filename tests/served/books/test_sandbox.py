"""The process that reads files of strangers, and how it ends when a file takes too much."""

import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from socket import SHUT_WR, socket, socketpair
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils.translation import override

from books.files.formats.records import NumberText, Record, UnreadableFile
from books.files.formats.registry import FORMATS
from books.files.sandbox import client, messages, tasks
from books.files.sandbox.client import ReaderFailed, StoredFile, Watch, start_process, start_reader
from tests.support.book_files import build_exported_book, write_books

CHUNK_BYTES = 1_000
HEADER = b"title,author,year,isbn,genre\n"
LIMIT_MESSAGE = "takes too much time or memory to be read"
LIMITS = {
    "RLIMIT_CORE": (0, 0),
    "RLIMIT_CPU": (20, 21),
    "RLIMIT_AS": (3 * 2**29, 3 * 2**29),
    "RLIMIT_FSIZE": (0, 0),
    "RLIMIT_NOFILE": (64, 64),
}


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> "list[subprocess.Popen[bytes]]":
    """Readers are processes, as they are in production. Returns those that were started."""
    started = []

    def start(connection: socket) -> "subprocess.Popen[bytes]":
        started.append(start_process(connection))
        return started[-1]

    monkeypatch.setattr(client, "start_reader", start_reader)
    monkeypatch.setattr(client, "start_process", start)
    return started


def build_source(content: bytes, encoding: str = "", **options: Any) -> StoredFile:
    def read_chunk(number: int) -> bytes:
        return content[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]

    return StoredFile(len(content), CHUNK_BYTES, encoding, read_chunk, **options)


def test_a_process_reads_a_file_and_sees_nothing_else(
    processes: "list[subprocess.Popen[bytes]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "secret")
    with override("de"), closing(client.iter_file_records(build_source(HEADER + b"A,B,1,2,C\n"))) as records:
        assert next(records).values["isbn"] == "2"
        folder = Path(f"/proc/{processes[0].pid}")
        variables = (folder / "environ").read_bytes().split(b"\0")
        assert {variable.partition(b"=")[0] for variable in variables} == {b"LANG", b"PYTHONDONTWRITEBYTECODE", b""}
        # Its input is the connection; the others are for what it says of its own faults.
        assert {path.name for path in (folder / "fd").iterdir()} == {"0", "1", "2"}
        limits = {name: resource.prlimit(processes[0].pid, getattr(resource, name)) for name in LIMITS}
    assert processes[0].returncode == -signal.SIGKILL
    assert limits == LIMITS


def test_it_says_in_the_language_of_who_asks_why_a_file_cannot_be_read(
    processes: "list[subprocess.Popen[bytes]]",
) -> None:
    with override("de"), pytest.raises(UnreadableFile, match="Zeile 3: Ein Anführungszeichen"):
        client.read_size(build_source(HEADER + b'A,B,1,2,C\n"'))


def test_it_dies_of_a_file_that_takes_too_long(
    processes: "list[subprocess.Popen[bytes]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CPU_SECONDS", 1)
    monkeypatch.setattr(client, "CPU_SECONDS_PER_MIB", 0)
    # On a busy machine it would be ended for the time that it takes.
    monkeypatch.setattr(client, "WAITING_FACTOR", 1_000)
    rows = b"A,B,1,2,C\n" * 50_000
    endless = StoredFile(2**40, len(rows), "utf-8", lambda number: rows if number else HEADER.ljust(len(rows), b"\n"))
    with pytest.raises(UnreadableFile, match=LIMIT_MESSAGE):
        client.read_size(endless)
    assert processes[0].returncode == -signal.SIGXCPU


def test_it_gives_up_a_file_that_takes_too_much_memory(
    processes: "list[subprocess.Popen[bytes]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MEMORY_BYTES", 2**20)
    part = bytes(8 * 2**20)
    with pytest.raises(UnreadableFile, match=LIMIT_MESSAGE):
        client.read_preview(StoredFile(len(part), len(part), "", lambda _number: part))


def test_who_stops_its_group_does_not_spoil_the_file(processes: "list[subprocess.Popen[bytes]]") -> None:
    with closing(client.iter_file_records(build_source(HEADER + b"A,B,1,2,C\n" * 1_000))) as records:
        next(records)
        os.kill(processes[0].pid, signal.SIGTERM)
        assert sum(1 for _ in records) == 999


def test_each_format_comes_through() -> None:
    isbns = [f"isbn-{number}" for number in range(7)]
    for name in FORMATS:
        source = build_source(write_books(name, [build_exported_book(id=n, isbn=isbn) for n, isbn in enumerate(isbns)]))
        head = client.read_preview(source)
        assert (head.format, len(head.rows), client.read_size(source).count) == (name, 5, 7)
        assert [record.values["isbn"] for record in client.iter_file_records(source)] == isbns, name


def test_a_record_is_the_same_on_the_other_side() -> None:
    records = [
        Record(1, {"isbn": NumberText("9E+12"), "title": "T"}, None, "row: wrong", ("isbn: doubtful",)),
        Record(2, {"title": "bytes that cannot be decoded: \udce9", "author": "NUL: \0"}, None),
        Record(3, {"year": 10**40, "id": None, "available": True, "genre": [{"a": [1.5]}]}, None),
        Record(4, {}, None, "record: wrong"),
    ]
    decoded = list(messages.decode_records(messages.encode_records(records)))
    assert decoded == records
    types = [[type(value) for value in record.values.values()] for record in records]
    assert [[type(value) for value in record.values.values()] for record in decoded] == types


def test_large_records_come_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    decode = messages.decode_records

    def decode_counting(content: bytes) -> Iterator[Record]:
        sizes.append(len(content))
        return decode(content)

    monkeypatch.setattr(messages, "decode_records", decode_counting)
    row = b"%b,B,1,2,C\n" % (b"A" * 100_000)
    assert sum(1 for _ in client.iter_file_records(build_source(HEADER + row * 12))) == 12
    assert max(sizes) < 400_000


def test_columns_that_would_fill_pages_are_refused() -> None:
    allowed = b",".join(b"c%d" % number for number in range(1_000))
    assert len(client.read_preview(build_source(allowed + b"\n" + allowed)).columns) == 1_000
    for header, reason in ((allowed + b",x", "more than 1,000 columns"), (b"x" * 100_001, "names of the columns")):
        with pytest.raises(UnreadableFile, match=reason):
            client.read_preview(build_source(header))


def test_more_records_than_an_operation_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MAX_RECORDS", 2)
    assert client.read_size(build_source(HEADER + b"A,B,1,2,C\n" * 2)).count == 2
    with pytest.raises(UnreadableFile, match="more than 2 records"):
        client.read_size(build_source(HEADER + b"A,B,1,2,C\n" * 3))


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


def test_the_records_that_come_back_are_asked_for_page_by_page() -> None:
    reasons = {2: "first", 3: "second", 5: "third"}
    asked = []

    def list_reasons(position: int) -> Sequence[tuple[int, str]]:
        asked.append(position)
        return [(number, reason) for number, reason in reasons.items() if number > position][:2]

    rows = b"".join(b"T%d,B,1,2,C\n" % number for number in range(1, 7))
    name, *pieces = client.iter_rejected_parts(build_source(HEADER + rows, list_reasons=list_reasons))
    assert (name, asked) == (b"csv", [0, 3, 5])
    lines = b"".join(pieces).decode().splitlines()[1:]
    assert lines == ["3,first,T2,B,1,2,C", "4,second,T3,B,1,2,C", "6,third,T5,B,1,2,C"]


def pretend(act: Callable[[socket], None]) -> Callable[[], AbstractContextManager[socket]]:
    """Returns what starts a reader that is compromised, or dead: it does nothing but this."""

    @contextmanager
    def start() -> Iterator[socket]:
        ours, theirs = socketpair()
        with ours, theirs:
            act(theirs)
            yield ours

    return start


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ([(messages.READY, b"")], UnreadableFile),
        ([(messages.READY, b""), (messages.REFUSED, b"")], UnreadableFile),
        ([(messages.READY, b""), (messages.FAILED, b"KeyError: x")], ReaderFailed),
        ([], ReaderFailed),
    ],
)
def test_a_reader_that_dies_is_the_fault_of_the_file_once_it_has_started(
    monkeypatch: pytest.MonkeyPatch, sent: list[tuple[bytes, bytes]], error: type[Exception]
) -> None:
    def act(connection: socket) -> None:
        for kind, content in sent:
            messages.send(connection, kind, content)
        connection.shutdown(SHUT_WR)

    monkeypatch.setattr(client, "start_reader", pretend(act))
    with pytest.raises(error):
        client.read_size(build_source(HEADER))


def test_a_reader_whose_memory_or_stack_ends_blames_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[type[Exception]] = [MemoryError, RecursionError]

    def fail(_source: tasks.PartSource) -> Iterator[bytes]:
        raise errors.pop()

    monkeypatch.setitem(tasks.READER_TASKS, "count", fail)
    while errors:
        with pytest.raises(UnreadableFile, match=LIMIT_MESSAGE):
            client.read_size(build_source(HEADER))


@pytest.mark.parametrize(("size", "seconds"), [(1, 20), (2**20, 20), (2**20 + 1, 30)])
def test_a_reader_of_a_large_file_may_take_longer(monkeypatch: pytest.MonkeyPatch, size: int, seconds: int) -> None:
    readers = []

    def act(connection: socket) -> None:
        readers.append(connection.dup())
        messages.send(connection, messages.READY)
        messages.send(connection, messages.END)

    monkeypatch.setattr(client, "start_reader", pretend(act))
    assert list(client.iter_file_records(build_source(HEADER)._replace(size=size))) == []
    with readers[0] as reader:
        assert json.loads(messages.receive(reader)[1])["cpu_seconds"] == seconds


def test_a_message_without_bounds_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_to_wait() -> None:
        raise AssertionError("It waits for the message.")

    monkeypatch.setattr(messages, "MAX_MESSAGE_BYTES", 3)
    ours, theirs = socketpair()
    with ours, theirs:
        ours.settimeout(0.01)
        messages.send(theirs, messages.RESULT, b"abc")
        assert messages.receive(ours) == (messages.RESULT, b"abc")
        theirs.sendall(messages.HEADER.pack(messages.RESULT, 4))
        with pytest.raises(messages.BadMessage):
            messages.receive(ours, refuse_to_wait)


def test_the_longest_record_fits_into_a_message() -> None:
    """A character beyond the basic plane takes twelve bytes in JSON."""
    text = "\U0001d11e" * tasks.MAX_RECORD_CHARACTERS
    record = Record(1, {"title": text}, None)
    assert len(messages.encode_records([record])) + 12 * tasks.BATCH_CHARACTERS < messages.MAX_MESSAGE_BYTES


def test_a_reader_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Meanwhile who waits is told every few seconds, to renew a lease."""
    signs: list[None] = []
    monkeypatch.setattr(client, "start_reader", pretend(lambda reader: messages.send(reader, messages.READY)))
    monkeypatch.setattr(client, "TICK", 0.01)
    monkeypatch.setattr(client, "KEEP_ALIVE_INTERVAL", 0)
    monkeypatch.setattr(client, "WAITING_FACTOR", 0.01)
    with pytest.raises(UnreadableFile, match=LIMIT_MESSAGE):
        client.read_size(build_source(HEADER, keep_alive=lambda: signs.append(None)))
    assert signs


def test_who_reads_slowly_does_not_use_up_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the time counts in which the reader is waited for."""
    clock = [0.0]
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with closing(client.iter_file_records(build_source(HEADER + b"A,B,1,2,C\n" * 1_000))) as records:
        for _record in records:
            clock[0] += 1_000


def test_many_short_waits_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    watch = Watch(10, lambda: None)

    def wait(seconds: float) -> None:
        with watch.measure():
            clock[0] += seconds

    for _ in range(5):
        wait(2)
    with pytest.raises(UnreadableFile, match=LIMIT_MESSAGE):
        wait(0.1)


def test_a_sign_of_life_is_given_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, signs = [0.0], list[float]()
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    watch = Watch(100, lambda: signs.append(clock[0]))
    for second in range(15):
        clock[0] = second
        watch.tick()
    assert signs == [6, 12]
