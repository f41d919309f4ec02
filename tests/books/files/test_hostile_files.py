"""Files of strangers: each is read in time and memory that its size allows, or refused with a sentence for people."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from books.files.formats import limits
from books.files.formats.records import CHUNK_BYTES, MAX_RECORD_BYTES, UnreadableFile
from books.files.formats.registry import FORMATS
from books.files.sandbox import client
from books.files.sandbox.client import StoredFile, count_records, start_reader
from tests.support import hostile_files
from tests.support.book_files import build_exported_book, read_records, write_books
from tests.support.hostile_files import HOSTILE_FILES, build_sheet, build_workbook
from tests.support.memory import trace_memory

pytestmark = pytest.mark.database_independent

SIZE = 200_000
# Reading begins with some work whatever the size is.
FIRST_CALLS, FIRST_BYTES = 20_000, 3 * 2**20
# Nearly as long as a record may be: some seconds or minutes by the square, and less than one otherwise.
LONG_SIZE = 900_000
MAX_PROCESSOR_SECONDS = 4
LONG_RECORDS: list[tuple[str, Callable[[int], bytes]]] = [
    ("ris", hostile_files.continue_ris_value),
    ("bibtex", hostile_files.repeat_authors),
    ("bibtex", hostile_files.pad_authors),
    ("bibtex", hostile_files.pad_entry_start),
    ("marcxml", hostile_files.pad_title),
    ("marcxml", hostile_files.open_parentheses),
]
EVERY_FILE = [(name, build) for name, builders in HOSTILE_FILES.items() if name != "xlsx" for build in builders]
# What is read of workbooks that have other records than none, or are refused.
HOSTILE_WORKBOOKS: dict[Callable[[int], bytes], int | str] = {
    hostile_files.number_row: 1,
    hostile_files.place_cell_beyond_the_last_column: 1,
    hostile_files.repeat_cells: 1,
    hostile_files.place_cells_far_right: "The file is too large or too nested to be read.",
    hostile_files.show_shared_text: "The file is too large or too nested to be read.",
    # What a document type defines is not read.
    hostile_files.define_entities: "The first row names no columns.",
    hostile_files.name_outside_entity: "The first row names no columns.",
    hostile_files.pack_otherwise: "It is no workbook that can be read: Cannot detect file format.",
}
every_file = pytest.mark.parametrize(("name", "build"), EVERY_FILE, ids=[build.__name__ for _, build in EVERY_FILE])
every_format = pytest.mark.parametrize("name", FORMATS)


PLAIN_FILES = {name: write_books(name, [build_exported_book(), build_exported_book(id=2)]) for name in FORMATS}
FRAGMENTS = [b"99999999999", b"-1", b"1e999", b"nan", b"{" * 40, b"<a>" * 40, b"[" * 2_000, b'"', b"\x1d", b"\x1e"]


class Calls:
    count = 0

    def add(self, frame: FrameType, event: str, argument: Any) -> None:
        self.count += 1


@contextmanager
def count_calls() -> Iterator[Calls]:
    """Counts the calls of functions, those of Python's own included."""
    calls, earlier = Calls(), sys.getprofile()
    sys.setprofile(calls.add)
    try:
        yield calls
    finally:
        sys.setprofile(earlier)


def consume(name: str, data: bytes) -> str:
    """Reads a file as an import does: one record at a time. Returns why it was refused, "" if it was not."""
    try:
        for _record in FORMATS[name].read(BytesIO(data), "").records:
            pass
    except UnreadableFile as error:
        return str(error)
    return ""


@every_file
def test_work_and_memory_grow_with_the_size_of_a_file(name: str, build: Callable[[int], bytes]) -> None:
    consume(name, build(SIZE))
    counts, peaks = [], []
    for size in (SIZE, 2 * SIZE):
        data = build(size)
        with count_calls() as calls:
            consume(name, data)
        with trace_memory() as memory, memory.measure():
            consume(name, data)
        counts.append(calls.count)
        peaks.append(memory.peak)
    assert counts[1] <= 2.5 * counts[0] + FIRST_CALLS
    assert peaks[1] <= 2.5 * peaks[0] + FIRST_BYTES


@contextmanager
def limit_work() -> Iterator[None]:
    """Fails when the processor has worked for much longer than any machine needs, instead of hanging."""

    def stop(*_arguments: object) -> None:
        raise TimeoutError

    earlier = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_PROCESSOR_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, earlier)


@pytest.mark.parametrize(("name", "build"), LONG_RECORDS, ids=[build.__name__ for _, build in LONG_RECORDS])
def test_a_long_record_is_no_work_by_the_square_of_its_length(name: str, build: Callable[[int], bytes]) -> None:
    """Calls do not show what a single one does with a million characters."""
    with limit_work():
        assert consume(name, build(LONG_SIZE)) == ""


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("csv", hostile_files.add_csv_columns(6_600), "more than 1,000 columns"),
        ("jsonl", hostile_files.add_json_members(10_010), "more than 1,000 columns"),
        ("marcxml", hostile_files.nest_marc_xml(2_000), "nested deeper than 32"),
        ("marcxml", hostile_files.name_marc_xml_elements(60_000), "more than 1,000 names"),
        ("bibtex", hostile_files.double_strings(1), "abbreviations fill in too much"),
    ],
)
def test_what_is_too_large_or_too_nested_is_refused_with_the_limit(name: str, data: bytes, sentence: str) -> None:
    assert consume(name, data).startswith("The file is too large or too nested to be read. ")
    assert sentence in consume(name, data)


def test_limits_are_kept_to_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ",".join(f"a{number}" for number in range(1_000))
    assert consume("csv", f"{columns}\n{columns}\n".encode()) == ""
    assert consume("jsonl", b'{"title": ' + b"[" * 31 + b"]" * 31 + b"}\n") == ""
    assert [record.problem for record in read_records("jsonl", b'{"a":' + b"[" * 31 + b"]" * 31 + b"}\n")] == [""]
    assert [record.problem for record in read_records("jsonl", b'{"a":' + b"[" * 32 + b"]" * 32 + b"}\n")] == [
        "row: It is nested deeper than 32."
    ]
    monkeypatch.setattr(limits, "MAX_RECORDS", 2)
    assert consume("ris", b"TY  - BOOK\nER  - \n" * 2) == ""
    assert "more than 2 records" in consume("ris", b"TY  - BOOK\nER  - \n" * 3)


def test_a_row_over_many_lines_is_bounded() -> None:
    row = b'"a\n",' * (MAX_RECORD_BYTES // 5 + 1)
    assert consume("csv", b"title,author\n1,2\n" + row) == (
        "The record on line 3 has no end within 1,048,576 characters."
    )
    # The bound is that of a row, not of the file.
    assert consume("csv", b"title\n" + (b'"' + b"a\n" * 60_000 + b'"\n') * 10) == ""


def read_in_process(data: bytes) -> int | str:
    """Returns how many records the process finds that reads files of strangers, or why it refuses the file."""
    source = StoredFile(
        len(data), CHUNK_BYTES, "", lambda number: data[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]
    )
    try:
        return count_records(source)
    except UnreadableFile as error:
        return str(error)


def test_the_process_holds_hostile_workbooks_by_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is read, or refused before it takes more than these limits."""
    monkeypatch.setattr(client, "start_reader", start_reader)
    monkeypatch.setattr(client, "MEMORY_BYTES", 2**28)
    monkeypatch.setattr(client, "CPU_SECONDS", 2)
    monkeypatch.setattr(client, "CPU_SECONDS_PER_MIB", 0)
    content = PLAIN_FILES["xlsx"]
    damaged = [
        content[: len(content) // 2],
        build_workbook({hostile_files.SHEET: "<worksheet><sheetData><row>"}),
        b"PK\x03\x04",
        b"\xd0\xcf\x11\xe0" * 200,
    ]
    for data in damaged:
        assert str(read_in_process(data)).startswith("It is no workbook that can be read: ")
    results = {build: read_in_process(build(SIZE)) for build in HOSTILE_FILES["xlsx"]}
    assert results == dict.fromkeys(HOSTILE_FILES["xlsx"], 0) | HOSTILE_WORKBOOKS


def test_an_odd_workbook_is_read_by_its_numbers() -> None:
    """Rows and cells count by the numbers that they name, in any order; those without a number follow."""
    data = build_sheet(
        '<row r="1048570"><c r="A1048570"><v>7</v></c></row><row><c><v>8</v></c></row>'
        '<row r="3"><c><v>2</v></c></row><row r="2"><c><v>1</v></c></row>'
    )
    assert [(record.line, record.values["isbn"]) for record in read_records("xlsx", data)] == [
        (2, "1"),
        (3, "2"),
        (1_048_570, "7"),
        (1_048_571, "8"),
    ]


def test_abbreviations_fill_in_as_much_as_is_read() -> None:
    """The length of those that a file may define is bounded, and how much they fill in for what is read."""
    long = b"@string{a = {" + b"x" * 1_000 + b"}}\n"
    entry = b"@book{b, title = a, note = {" + b"y" * 200 + b"}}\n"
    assert consume("bibtex", long + entry * 1_500) == ""
    assert "fill in too much" in consume("bibtex", long + entry.replace(b"y", b"") * 2_500)
    others = b"".join(b"@string{a%d = {%b}}\n" % (number, b"x" * 100_000) for number in range(11))
    assert "too long together" in consume("bibtex", others)


@pytest.mark.parametrize("encoding", ["x-unknown", "gbk", "idna", "punycode", "zlib", "undefined"])
def test_xml_in_an_encoding_that_is_not_known_is_refused(encoding: str) -> None:
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    assert consume("marcxml", f"{head}<collection/>".encode()).startswith("The XML names an encoding")


def test_a_field_of_marc_is_read_once() -> None:
    [record] = read_records("marc", hostile_files.overlap_marc_fields(5_000))
    assert record.problem == "record: Its directory does not fit field 245."


def test_accents_are_bounded_where_they_must_be_put_in_order() -> None:
    [record] = read_records("marc", hostile_files.pile_accents(200))
    assert record.problem == "record: It has more accents on a letter than can be read."
    [record] = read_records("marc", hostile_files.pile_accents(40))
    assert record.problem == ""


def test_a_workbook_of_another_program_is_read() -> None:
    """Shared and formatted texts, readings in another script, prefixes of namespaces, dates and days from 1904."""
    parts = {
        **hostile_files.SHARED_RELATIONS,
        hostile_files.SHARED_TEXTS: '<x:sst xmlns:x="y"><x:si><x:r><x:t>is</x:t></x:r><x:r><x:t>bn</x:t></x:r><x:rPh>'
        "<x:t>no</x:t></x:rPh></x:si><x:si><x:t>_x005F_x000D_</x:t></x:si></x:sst>",
        "xl/styles.xml": '<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy"/></numFmts><cellXfs>'
        '<xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="46"/></cellXfs></styleSheet>',
        "xl/workbook.xml": '<workbook xmlns:r="z"><workbookPr date1904="1"/><sheets><sheet r:id="rId1"/></sheets>'
        "</workbook>",
        hostile_files.SHEET: "<worksheet><sheetData>"
        '<row><c t="s"><v>0</v></c></row><row><c t="s"><v>1</v></c></row><row><c t="e"><v>#N/A</v></c></row>'
        '<row><c s="1"><v>1</v></c></row><row><c s="2"><v>0.5</v></c></row>'
        '<row><c t="b"><v>1</v></c></row><row><c t="d"><v>2026-01-31</v></c></row><row><c t="str"><v>a</v></c></row>'
        "<row><c><f>1+1</f><v>2</v></c></row></sheetData></worksheet>",
    }
    relations = parts["xl/_rels/workbook.xml.rels"].replace(
        "</Rel", '<Relationship Id="rId8" Type="x/styles" Target="/xl/styles.xml"/></Rel'
    )
    data = build_workbook({**parts, "xl/_rels/workbook.xml.rels": relations})
    assert [record.values["isbn"] for record in read_records("xlsx", data)] == [
        "_x000D_",
        "1904-01-02",
        "12:00:00",
        "true",
        "2026-01-31",
        "a",
        "2",
    ]


@pytest.mark.parametrize("name", FORMATS.keys() - {"xlsx"})
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """Nothing else is raised, whatever is cut out, doubled or replaced."""
    content = PLAIN_FILES[name]
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 30)))
    damaged = content[:start] + data.draw(st.binary(max_size=12) | st.sampled_from(FRAGMENTS)) + content[end:]
    consume(name, damaged)
