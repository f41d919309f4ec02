"""Files that are damaged, or odd: they are read, or refused with a sentence for people."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from books.files.formats.records import UnreadableFile
from books.files.formats.registry import FORMATS
from tests.support import hostile_files
from tests.support.book_files import build_exported_book, read_records, write_books
from tests.support.hostile_files import build_sheet, build_workbook

PLAIN_FILES = {name: write_books(name, [build_exported_book(), build_exported_book(id=2)]) for name in FORMATS}
FRAGMENTS = [b"99999999999", b"-1", b"1e999", b"nan", b"{" * 40, b"<a>" * 40, b"[" * 2_000, b'"', b"\x1d", b"\x1e"]


def test_a_damaged_workbook_is_refused() -> None:
    content = PLAIN_FILES["xlsx"]
    sheet = build_workbook({hostile_files.SHEET: "<worksheet><sheetData><row>"})
    for data in (content[: len(content) // 2], sheet, b"PK\x03\x04", b"\xd0\xcf\x11\xe0" * 200):
        with pytest.raises(UnreadableFile, match="It is no workbook that can be read\\."):
            read_records("xlsx", data)


def test_an_odd_workbook_is_read_by_its_numbers() -> None:
    """Rows and cells count by the numbers that they name, in any order; those without a number follow."""
    data = build_sheet(
        '<row r="100000"><c r="A100000"><v>7</v></c></row><row><c><v>8</v></c></row>'
        '<row r="3"><c><v>2</v></c></row><row r="2"><c><v>1</v></c></row>'
    )
    assert [(record.line, record.values["isbn"]) for record in read_records("xlsx", data)] == [
        (2, "1"),
        (3, "2"),
        (100_000, "7"),
        (100_001, "8"),
    ]


def test_xml_in_an_encoding_that_is_not_known_is_refused() -> None:
    for encoding in ("x-unknown", "gbk", "idna", "punycode", "zlib", "undefined"):
        with pytest.raises(UnreadableFile, match="The XML names an encoding"):
            read_records("marcxml", f'<?xml version="1.0" encoding="{encoding}"?><collection/>'.encode())


def test_a_field_of_marc_is_read_once() -> None:
    [record] = read_records("marc", hostile_files.overlap_marc_fields(5_000))
    assert record.problem.startswith("record: Its directory covers 4159584 of")


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "xlsx"])
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """Nothing else is raised, whatever is cut out, doubled or replaced."""
    content = PLAIN_FILES[name]
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 30)))
    damaged = content[:start] + data.draw(st.binary(max_size=12) | st.sampled_from(FRAGMENTS)) + content[end:]
    with suppress(UnreadableFile, RecursionError):
        read_records(name, damaged)
