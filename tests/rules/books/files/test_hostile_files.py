"""Files of strangers: the process that reads them reads each, or refuses it, within its limits of memory and time."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from books.files.formats.records import CHUNK_BYTES, UnreadableFile
from books.files.formats.registry import FORMATS
from books.files.sandbox import client
from books.files.sandbox.client import StoredFile, iter_file_records, start_reader
from tests.support import hostile_files
from tests.support.book_files import build_exported_book, read_records, write_books
from tests.support.hostile_files import HOSTILE_FILES, build_sheet, build_workbook

SIZE = 350_000
LIMIT = "The file takes too much time or memory to be read. Divide it, or export it anew."
# How many records without a problem a file has, or why it is refused. The others have none.
HOSTILE_RESULTS: dict[Callable[[int], bytes], int | str] = {
    hostile_files.add_csv_columns: "The file has more than 1,000 columns.",
    hostile_files.pad_csv_cells: 3,
    hostile_files.add_json_members: "The file has more than 1,000 columns.",
    hostile_files.list_json_objects: 25_001,
    hostile_files.nest_json_array: LIMIT,
    hostile_files.space_json_array: "The array is damaged. JSON is malformed: invalid character (byte 4)",
    hostile_files.pile_accents: LIMIT,
    hostile_files.nest_marc_xml: LIMIT,
    hostile_files.pad_title: 1,
    hostile_files.open_parentheses: 1,
    hostile_files.double_strings: LIMIT,
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
    hostile_files.pack_otherwise: "It is no workbook that can be read: Cannot detect file format.",
}


PLAIN_FILES = {name: write_books(name, [build_exported_book(), build_exported_book(id=2)]) for name in FORMATS}
FRAGMENTS = [b"99999999999", b"-1", b"1e999", b"nan", b"{" * 40, b"<a>" * 40, b"[" * 2_000, b'"', b"\x1d", b"\x1e"]


def count_good_records(name: str, data: bytes) -> int | str:
    """Returns how many records the process finds that reads files of strangers, or why it refuses the file."""

    def read_chunk(number: int) -> bytes:
        return data[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]

    try:
        records = iter_file_records(StoredFile(len(data), CHUNK_BYTES, "", read_chunk, format=name))
        return sum(not record.problem for record in records)
    except UnreadableFile as error:
        return str(error)


def test_the_process_holds_hostile_files_by_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "start_reader", start_reader)
    monkeypatch.setattr(client, "MEMORY_BYTES", 2**28)
    monkeypatch.setattr(client, "CPU_SECONDS", 2)
    monkeypatch.setattr(client, "CPU_SECONDS_PER_MIB", 0)
    builders = [(name, build) for name, builders in HOSTILE_FILES.items() for build in builders]
    results = {build: count_good_records(name, build(SIZE)) for name, build in builders}
    assert results == {build: HOSTILE_RESULTS.get(build, 0) for build in results}


def test_a_damaged_workbook_is_refused() -> None:
    content = PLAIN_FILES["xlsx"]
    sheet = build_workbook({hostile_files.SHEET: "<worksheet><sheetData><row>"})
    for data in (content[: len(content) // 2], sheet, b"PK\x03\x04", b"\xd0\xcf\x11\xe0" * 200):
        assert str(count_good_records("xlsx", data)).startswith("It is no workbook that can be read: ")


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


@pytest.mark.parametrize("encoding", ["x-unknown", "gbk", "idna", "punycode", "zlib", "undefined"])
def test_xml_in_an_encoding_that_is_not_known_is_refused(encoding: str) -> None:
    data = f'<?xml version="1.0" encoding="{encoding}"?><collection/>'.encode()
    with pytest.raises(UnreadableFile, match="The XML names an encoding"):
        read_records("marcxml", data)


def test_a_field_of_marc_is_read_once() -> None:
    [record] = read_records("marc", hostile_files.overlap_marc_fields(5_000))
    assert record.problem.startswith("record: Its directory covers 4159584 of")


@pytest.mark.parametrize("name", FORMATS.keys() - {"xlsx"})
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """Nothing else is raised, whatever is cut out, doubled or replaced."""
    content = PLAIN_FILES[name]
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 30)))
    damaged = content[:start] + data.draw(st.binary(max_size=12) | st.sampled_from(FRAGMENTS)) + content[end:]
    with suppress(UnreadableFile, RecursionError):
        read_records(name, damaged)
