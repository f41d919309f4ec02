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
from tests.support.program_files import write_workbook

PLAIN_FILES = {name: write_books(name, [build_exported_book(), build_exported_book(id=2)]) for name in FORMATS}
FRAGMENTS = [b"99999999999", b"-1", b"1e999", b"nan", b"{" * 40, b"<a>" * 40, b"[" * 2_000, b'"', b"\x1d", b"\x1e"]


HEADER = b"title,author,year,isbn,genre\n"
WORKBOOK, XML = "It is no workbook that can be read.", '<?xml version="1.0" encoding="{}"?><collection/>'
DOCUMENT_TYPE = "The XML defines a document type or entities. Such files are not read."
REFUSALS: list[tuple[str, bytes, str]] = [
    ("xlsx", PLAIN_FILES["xlsx"][: len(PLAIN_FILES["xlsx"]) // 2], WORKBOOK),
    ("xlsx", build_workbook({hostile_files.SHEET: "<worksheet><sheetData><row>"}), WORKBOOK),
    ("xlsx", b"PK\x03\x04 and nothing more", WORKBOOK),
    ("xlsx", b"\xd0\xcf\x11\xe0" * 200, WORKBOOK),
    ("xlsx", write_workbook([None, "a", "b", "a"]), "The columns B and D have the same name “a”."),
    ("csv", b"", "The first row names no columns."),
    ("csv", b",,\n1,2,3\n", "The first row names no columns."),
    ("csv", b"a,b,a\n", "The columns A and C have the same name “a”."),
    ("csv", b"line,reason,a,b,a\n", "The columns C and E have the same name “a”."),
    ("csv", b"".join(b"x%d," % n for n in range(27)) + b"x26\n", "The columns AA and AB have the same name “x26”."),
    ("csv", b"sep=~\na~b\n", "Its first line says that “~” separates the cells. Save it with commas or semicolons."),
    ("csv", HEADER + b'"never closed', 'Line 2: a quotation mark (") is opened and never closed.'),
    ("jsonl", b'[\n{"a": 1},\n', "The array is damaged on line 3."),
    ("jsonl", b'[{"a": 1}]\n]', "The array is damaged on line 2."),
    ("jsonl", b'[{"a": 1, "isbn"},\n{"isbn": "1"}]', "The array is damaged on line 1."),
    ("marcxml", b"<collection><record></collection>", "The XML has an error on line 1, column 23, behind 0 records."),
    ("marcxml", b"<!DOCTYPE a [<!ENTITY b 'c'>]><collection/>", DOCUMENT_TYPE),
    *(("marcxml", XML.format(encoding).encode(), "The XML names an encoding that is not known. Store it as UTF-8.")
      for encoding in ("x-unknown", "gbk", "idna", "punycode", "zlib", "undefined")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "reason"), REFUSALS)
def test_a_file_that_cannot_be_read_is_refused_with_the_reason(name: str, data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableFile) as error:
        read_records(name, data)
    assert str(error.value) == reason


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
