"""Files of strangers: each is read in time and memory that its size allows, or refused with a sentence for people."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from types import FrameType
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook

from books.files.formats import limits, xlsx_files, xlsx_parts
from books.files.formats.records import MAX_RECORD_BYTES, UnreadableFile
from books.files.formats.registry import FORMATS
from tests.support import hostile_files
from tests.support.book_files import build_exported_book, read_records, write_books
from tests.support.hostile_files import HOSTILE_FILES, build_sheet, build_workbook, write_workbook
from tests.support.memory import trace_memory

pytestmark = pytest.mark.database_independent

SIZE = 20_000
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
EVERY_FILE = [(name, build) for name, builders in HOSTILE_FILES.items() for build in builders]
every_file = pytest.mark.parametrize(("name", "build"), EVERY_FILE, ids=[build.__name__ for _, build in EVERY_FILE])
every_format = pytest.mark.parametrize("name", FORMATS)


PLAIN_FILES = {name: write_books(name, [build_exported_book(), build_exported_book(id=2)]) for name in FORMATS}
with ZipFile(BytesIO(PLAIN_FILES["xlsx"])) as archive:
    PLAIN_PARTS = {"xlsx": archive.read(hostile_files.SHEET)}
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
        ("xlsx", hostile_files.number_row(2_000_000_000), "more than 1,048,576 rows"),
        ("xlsx", hostile_files.place_cell_beyond_the_last_column(1), "more than 16,384 cells"),
        ("xlsx", hostile_files.repeat_cells(22 * 16_400), "more than 16,384 cells"),
        ("xlsx", build_sheet("<x>" * 100), "nested deeper than 32"),
        ("xlsx", hostile_files.name_elements(9_000), "more than 1,000 names"),
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
    assert consume("xlsx", build_sheet('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')) == ""
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


def test_what_is_between_two_numbered_rows_takes_no_time() -> None:
    data = build_sheet('<row r="1048570"><c r="A1048570"><v>7</v></c></row><row><c><v>8</v></c></row>')
    assert [(record.line, dict(record.values)) for record in read_records("xlsx", data)] == [
        (1_048_570, {"isbn": "7"}),
        (1_048_571, {"isbn": "8"}),
    ]


def test_rows_in_a_wrong_order_are_refused_and_not_left_out() -> None:
    data = build_sheet('<row r="3"><c><v>1</v></c></row><row r="2"><c><v>2</v></c></row>')
    assert consume("xlsx", data) == "A sheet is not in order: row 2 comes behind row 3."


@pytest.mark.parametrize(
    ("limit", "refused", "read"),
    [("MAX_SHARED_BYTES", 5_000, 2**20), ("MAX_SHARED_MEMORY", 500, 2**20), ("MAX_UNPACKED_BYTES", 5_000, 2**20)],
)
def test_what_a_workbook_unpacks_to_is_bounded_in_every_part(
    monkeypatch: pytest.MonkeyPatch, limit: str, refused: int, read: int
) -> None:
    """Also of a part that lies where the sheets are, and by what is unpacked, not by what the list of parts says."""
    relations = hostile_files.SHARED_RELATIONS["xl/_rels/workbook.xml.rels"]
    parts = {
        "xl/_rels/workbook.xml.rels": relations.replace("sharedStrings.xml", "worksheets/texts.xml"),
        "xl/worksheets/texts.xml": "<sst>" + "<si><t>some text</t></si>" * 200 + "</sst>",
    }
    monkeypatch.setattr(xlsx_parts, limit, read)
    assert consume("xlsx", build_workbook(parts)) == ""
    monkeypatch.setattr(xlsx_parts, limit, refused)
    assert consume("xlsx", build_workbook(parts)).startswith("The file is too large or too nested to be read. ")


def test_each_cell_that_shows_a_shared_text_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short file could name a long text very often."""
    monkeypatch.setattr(xlsx_parts, "MAX_UNPACKED_BYTES", 3 * 2**20)
    assert consume("xlsx", hostile_files.show_shared_text(40)) == ""
    assert "too large when they are unpacked" in consume("xlsx", hostile_files.show_shared_text(200))


def test_a_sheet_may_shrink_to_a_hundredth_and_no_part_to_a_thousandth() -> None:
    rows = "".join(f'<row r="{number}"{" " * 100}><c><v>{number}</v></c></row>' for number in range(2, 9_000))
    data = build_sheet(rows)
    with ZipFile(BytesIO(data)) as archive:
        part = archive.getinfo(hostile_files.SHEET)
    assert part.file_size > xlsx_parts.SMALL_BYTES
    assert part.file_size / part.compress_size < xlsx_parts.MAX_RATIO / 4
    assert consume("xlsx", data) == ""
    assert consume("xlsx", hostile_files.unpack_to_much(2**21)) == "The workbook is too large when it is unpacked."


def test_a_workbook_with_two_parts_of_one_name_is_refused() -> None:
    assert consume("xlsx", hostile_files.repeat_part(1)) == "The workbook has a part twice."


@pytest.mark.parametrize("build", [hostile_files.define_entities, hostile_files.name_outside_entity])
def test_no_entity_of_a_workbook_is_read(build: Callable[[int], bytes]) -> None:
    assert "document type or entities" in consume("xlsx", build(10))


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
    sheet = {hostile_files.SHEET: f"{head}<worksheet/>"}
    assert "workbook" in consume("xlsx", build_workbook(sheet))


def test_a_field_of_marc_is_read_once() -> None:
    [record] = read_records("marc", hostile_files.overlap_marc_fields(5_000))
    assert record.problem == "record: Its directory does not fit field 245."


def test_accents_are_bounded_where_they_must_be_put_in_order() -> None:
    [record] = read_records("marc", hostile_files.pile_accents(200))
    assert record.problem == "record: It has more accents on a letter than can be read."
    [record] = read_records("marc", hostile_files.pile_accents(40))
    assert record.problem == ""


def read_by_openpyxl(data: bytes) -> list[list[Any]]:
    sheet = load_workbook(BytesIO(data), read_only=True, data_only=True).worksheets[0]
    return [list(row) for row in sheet.iter_rows(min_row=2, values_only=True)]


cells = (
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(-1e9, 1e9) | st.text("aé&<\t ", max_size=5)
)


@given(rows=st.lists(st.lists(cells | st.dates() | st.datetimes() | st.times(), min_size=3, max_size=3), max_size=3))
def test_a_workbook_is_read_as_openpyxl_reads_it(rows: list[list[Any]]) -> None:
    """Values of all types, with the formats of dates."""
    columns = ["a", "b", "c"]
    data = write_workbook([columns, *rows])
    expected = [[xlsx_files.format_cell(cell) for cell in row] for row in read_by_openpyxl(data)]
    assert [list(record.values.values()) for record in read_records("xlsx", data)] == [
        row for row in expected if any(row)
    ]


def test_a_workbook_of_another_program_is_read() -> None:
    """Shared and formatted texts, readings in another script, prefixes of namespaces, errors, and days from 1904."""
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
        '<row><c s="1"><v>1</v></c></row><row><c s="2"><v>0.5</v></c></row><row><c s="1"><v>1e99</v></c></row>'
        '<row><c t="b"><v>1</v></c></row><row><c t="d"><v>2026-01-31</v></c></row><row><c t="str"><v>a</v></c></row>'
        "<row><c><f>1+1</f><v>2</v></c></row></sheetData></worksheet>",
    }
    relations = parts["xl/_rels/workbook.xml.rels"].replace(
        "</Rel", '<Relationship Id="rId8" Type="x/styles" Target="/xl/styles.xml"/></Rel'
    )
    data = build_workbook({**parts, "xl/_rels/workbook.xml.rels": relations})
    assert [record.values["isbn"] for record in read_records("xlsx", data)] == [
        "_x000D_",
        "#N/A",
        "1904-01-02T00:00:00",
        "12:00:00",
        "#VALUE!",
        "true",
        "2026-01-31",
        "a",
        "2",
    ]


@every_format
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """Nothing else is raised, whatever is cut out, doubled or replaced."""
    content = PLAIN_PARTS[name] if name == "xlsx" else PLAIN_FILES[name]
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 30)))
    damaged = content[:start] + data.draw(st.binary(max_size=12) | st.sampled_from(FRAGMENTS)) + content[end:]
    consume(name, build_workbook({hostile_files.SHEET: damaged}) if name == "xlsx" else damaged)


@given(data=st.data())
def test_a_damaged_archive_is_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(PLAIN_FILES["xlsx"])
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=8)):
        content[place] = data.draw(st.integers(0, 255))
    consume("xlsx", bytes(content))
