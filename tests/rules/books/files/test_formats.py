"""The formats of files of books: what is written is read again, and rejected records can be mended."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook

from books.files.formats import xlsx_files
from books.files.formats.encodings import ENCODINGS, find_invalid_line, propose_encodings
from books.files.formats.records import READ_BYTES, ExportedBook, NumberText
from books.files.formats.registry import FORMATS, find_format
from tests.support.book_files import (
    FIELDS,
    build_exported_book,
    get_fields,
    hostile_books,
    read_records,
    read_rejected,
    reject_records,
    write_books,
)
from tests.support.program_files import write_workbook

every_format = pytest.mark.parametrize("name", FORMATS)
HEADER = "title,author,year,isbn,genre\n"
RIS, BIB = "TY  - BOOK\nTI  - Café\nER  - \n", "@book{x, title = {Café}}\n"
# As Excel 97 writes one.
OLD_WORKBOOK = Path(__file__).parent / "books.xls"
OPEN_NAMESPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
)
# A file of each format with one record that cannot be read between two that can.
DAMAGED_FILES = {
    "csv": b"title,author,year,isbn,genre\nA,B,1,1,G\nshort\nC,D,2,2,G\n",
    "jsonl": b'{"isbn": "1"}\n{"isbn": \n{"isbn": "2"}\n',
    "bibtex": b"@book{a, isbn = {1}}\n@book{b, isbn = {\n@book{c, isbn = {2}}\n",
    "ris": b"TY  - BOOK\nSN  - 1\nER  - \nTY  - BOOK\nSN  - x\nTY  - BOOK\nSN  - 2\nER  - \n",
}


def read_texts(data: bytes, encoding_name: str = "") -> list[list[str]]:
    return [list(record.values.values()) for record in read_records("csv", data, encoding_name)]


@every_format
@settings(max_examples=settings().max_examples // 2)
@given(books=st.lists(hostile_books, min_size=1, max_size=3))
def test_what_is_exported_is_read_again(name: str, books: list[ExportedBook]) -> None:
    check_export_is_read_again(name, books)


def check_export_is_read_again(name: str, books: list[ExportedBook]) -> None:
    data = write_books(name, books)
    assert find_format(BytesIO(data)) is FORMATS[name]
    records = read_records(name, data)
    assert [get_fields(record) for record in records] == [
        {field: getattr(book, field) for field in FIELDS} for book in books
    ]
    assert not any(record.problem or record.warnings for record in records)


@every_format
@settings(max_examples=settings().max_examples // 2)
@given(books=st.lists(hostile_books, min_size=1, max_size=2))
def test_rejected_records_are_read_again(name: str, books: list[ExportedBook]) -> None:
    rejected = reject_records(name, write_books(name, books))
    for file in (rejected, reject_records(*rejected)):
        assert [get_fields(record) for record in read_records(*file)] == [
            {field: getattr(book, field) for field in FIELDS} for book in books
        ]


def test_a_damaged_record_costs_no_other() -> None:
    for name, data in DAMAGED_FILES.items():
        first, damaged, last = read_records(name, data)
        assert (first.values["isbn"], bool(damaged.problem), last.values["isbn"]) == ("1", True, "2")
        # What cannot be read comes back without values, so that it is rejected again.
        assert [record.values.get("isbn") or "" for record in read_rejected(name, data)] == ["1", "", "2"]


def test_separator_and_encoding_are_found_and_said() -> None:
    files = {
        b"title;author\n\xc3\xa9;x\n": "CSV with semicolons, UTF-8",
        b"\xef\xbb\xbftitle,author\n\xc3\xa9,x\n": "CSV with commas, UTF-8 with a byte order mark",
        "title\tauthor\né\tx\n".encode("utf-16"): "CSV with tabs, UTF-16 with a byte order mark",
        "title\tauthor\né\tx\n".encode("utf-16-be"): "CSV with tabs, UTF-16",
    }
    for data, description in files.items():
        rejected_description = f"{description.partition(',')[0]}, UTF-8 with a byte order mark"
        rejected = reject_records("csv", data)[1]
        for content, expected in ((data, description), (rejected, rejected_description)):
            table = FORMATS["csv"].read(BytesIO(content), "")
            assert (table.description, table.warning) == (expected, "")
            assert [dict(record.values) for record in table.records] == [{"title": "é", "author": "x"}]


def test_windows_1252_is_offered_where_a_file_is_not_utf_8() -> None:
    for name, text in (("csv", "title;naïve\nCafé;“z”\n"), ("ris", RIS), ("bibtex", BIB)):
        data = text.encode("cp1252")
        table = FORMATS[name].read(BytesIO(data), "")
        assert re.match("Line [12] is not UTF-8", table.warning)
        assert next(table.records).values["title"] == "Caf\udce9"
        assert propose_encodings(BytesIO(data))[0] == "windows-1252"
        [record] = read_records(name, data, "windows-1252")
        assert record.values["title"] == "Café"
        # Without an encoding its bytes come back unchanged.
        for encoding, title in (("windows-1252", "Café"), ("", "Caf\udce9")):
            assert read_rejected(name, data, encoding)[0].values["title"] == title


def test_an_encoding_is_proposed_by_the_words_that_a_file_would_have() -> None:
    """The user chooses: a short text may have sense in several encodings."""
    titles = {
        "windows-1250": "Příliš žluťoučký kůň",
        "windows-1251": "Море и берега",
        "windows-1254": "İstanbul ışığı çağ",
        "koi8-r": "Берега и море большой реки",
        "gb18030": "海与港口的故事",
        "shift_jis": "海の箱カタカナ",
        "big5": "海與港口",
        "euc-kr": "바다와 항구",
        "mac-roman": "Crème brûlée à l’œuf",
        "cp437": "Crème brûlée",
    }
    for name, title in titles.items():
        data = f"title,author\n{title},{title}\n".encode(ENCODINGS[name].codec)
        assert name in propose_encodings(BytesIO(data))
        assert read_texts(data, name) == [[title, title]]


def test_a_separator_in_quotes_is_no_separator() -> None:
    assert read_texts(b'"a,b,c";title\n1;2\n') == [["1", "2"]]


def test_a_workbook_is_laid_out_to_be_read_and_its_texts_are_no_formulas() -> None:
    """What is typed below the last ISBN is a text, too, and keeps its zeros."""
    data = write_books("xlsx", [build_exported_book(title="=1+1", author="#N/A", isbn="00123", genre="a\rb\x1d")])
    sheet: Any = load_workbook(BytesIO(data))["Sheet"]
    assert [cell.data_type for cell in sheet[2]] == ["n", "s", "s", "n", "s", "s", "s", "s"]
    assert [cell.number_format for cell in sheet[2]] == ["General", "@", "@", "General", "@", "@", "General", "General"]
    assert (sheet["B2"].value, sheet["F2"].value) == ("=1+1", "a_x000D_b_x001D_")
    assert sheet.column_dimensions["E"].number_format == "@"
    assert sheet.freeze_panes == "A2"
    assert sheet.column_dimensions["B"].width > sheet.column_dimensions["D"].width


def test_numbers_of_a_workbook_are_marked() -> None:
    data = write_workbook(["isbn", "title", "year"], [9780141439518, 1984, 1949.0], [141439513, None, True])
    first, second = read_records("xlsx", data)
    assert dict(first.values) == {"isbn": "9780141439518", "title": "1984", "year": "1949"}
    assert dict(second.values) == {"isbn": "141439513", "title": "", "year": "true"}
    assert isinstance(first.values["isbn"], NumberText)


def test_a_sheet_goes_on_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx_files, "BOOKS_PER_SHEET", 2)
    data = write_books("xlsx", [build_exported_book(id=number) for number in range(1, 6)])
    assert len(load_workbook(BytesIO(data)).worksheets) == 3
    assert [record.values["id"] for record in read_records("xlsx", data)] == ["1", "2", "3", "4", "5"]


def test_workbooks_of_other_kinds_are_read() -> None:
    emma = {"title": "Emma", "author": "Jane Austen", "year": "1815", "isbn": "9780141439587", "genre": "Novel"}
    for data, description in ((OLD_WORKBOOK.read_bytes(), "XLS"), (write_open_document(emma), "ODS")):
        assert find_format(BytesIO(data), "books.csv") is FORMATS["xlsx"]
        table = FORMATS["xlsx"].read(BytesIO(data), "")
        records = [record.values for record in table.records]
        assert (table.description, records[0]) == (description, emma)
    # A row that ODS repeats is as many rows in LibreOffice. Empty ones are no records.
    assert records == [emma, emma]


def write_open_document(values: Mapping[str, str]) -> bytes:
    """Returns a sheet that has the row of these values twice."""
    rows = "".join(
        f'<table:table-row table:number-rows-repeated="{count}">{"".join(map(format_open_cell, row))}</table:table-row>'
        for count, row in ((1, values), (2, values.values()))
    )
    content = (
        f"<office:document-content {OPEN_NAMESPACES}><office:body><office:spreadsheet>"
        f'<table:table table:name="Books">{rows}<table:table-row table:number-rows-repeated="1048574">'
        '<table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    file = BytesIO()
    with ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet", ZIP_DEFLATED)
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", content)
    return file.getvalue()


def format_open_cell(text: str) -> str:
    kind = f'float" office:value="{text}' if text.isdigit() else "string"
    return f'<table:table-cell office:value-type="{kind}"><text:p>{text}</text:p></table:table-cell>'


def test_a_workbook_that_is_given_up_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(xlsx_files, "BOOKS_PER_SHEET", 1)

    def iter_pages() -> Iterator[list[ExportedBook]]:
        yield [build_exported_book(), build_exported_book(id=18)]
        assert len([*tmp_path.iterdir()]) == 2
        raise ConnectionError

    with pytest.raises(ConnectionError):
        xlsx_files.write_xlsx(iter_pages(), BytesIO())
    assert [*tmp_path.iterdir()] == []


def test_bibtex_of_others_is_read() -> None:
    data = rb"""
        A comment with an @ sign.
        @string{pub = "Union des {\'E}crivains, Paris"}
        @book(camus42, author = "Camus, Albert and {Smith and Sons}", title = {L'{\'E}tranger {\"u}ber  alles~\ss},
          date = 1942-05, ISBN = "2-07-" # {036002-4}, keywords = pub)
    """
    [record] = read_records("bibtex", data)
    assert record.values == {
        "title": "L'Étranger über alles ß",
        "author": "Camus, Albert; Smith and Sons",
        "year": "1942-05",
        "isbn": "2-07-036002-4",
        "genre": "Union des Écrivains",
    }


def test_ris_of_others_is_read() -> None:
    text = (
        "TY - BOOK\nT1  -  A \u00a0 long\n title \nA1 - Austen, Jane\nA1  - Other\nY1  - 1815/12/23/\nSN  - 1\nER  -\n"
    )
    data = text.encode()
    [record] = read_records("ris", data)
    expected = {"title": "A long title", "author": "Austen, Jane; Other", "year": "1815", "isbn": "1"}
    assert record.values == expected
    assert [record.problem for record in read_records("ris", b"\nlost\n" + data)] == [
        "record: It does not begin with a line TY.",
        "",
    ]


def test_numbers_before_the_records_of_ris_are_no_records() -> None:
    for number in ("1.\n", "1.\r\n\r\n", "1\n", " 12. \n", "\n1.\n"):
        data = f"{number}TY  - BOOK\nTI  - 1984\n1949.\nER  - \n\n{number}TY  - BOOK\nTI  - Emma\nER  - \n".encode()
        assert find_format(BytesIO(data), "books.csv") is FORMATS["ris"]
        assert [(record.values, record.problem) for record in read_records("ris", data)] == [
            ({"title": "1984 1949."}, ""),
            ({"title": "Emma"}, ""),
        ]


def test_the_content_of_a_file_counts_more_than_its_name() -> None:
    formats = {
        ("books.ris", f"Provider: Ångström\n{RIS}"): "ris",
        ("books.txt", RIS): "ris",
        ("books.bib", f"Exported, with commas\n{BIB}"): "bibtex",
        ("BOOKS.BIB", f"Exported, with commas\n{BIB}"): "bibtex",
        ("books.csv", BIB): "bibtex",
        ("books.mrc", BIB): "bibtex",
        ("books.bib", RIS): "ris",
        ("books.ris", "title,author\nTY,x\n"): "csv",
        ("books.bib", "title,author\n@home,x\n"): "csv",
        ("books.mrc", "title,author\nx,y\n"): "csv",
        ("books.mrc", "garbage\x1e\x1d"): "marc",
        ("books.dat", "\r\n00035nam a2200000 a 4500"): "marc",
        ("books.ris", "<collection/>"): "marcxml",
        ("books.json", "\n1"): "jsonl",
        **{(name, "title,isbn"): "csv" for name in ("books.tsv", "books.xlsx", "books.xml", "ris", "")},
    }
    assert {file: find_format(BytesIO(file[1].encode()), file[0]).name for file in formats} == formats


@every_format
def test_blanks_and_escapes_are_read_again(name: str) -> None:
    texts = ["\b\ufffd", "_x1999\r", "_x1999_x000D_", "a\x85b", "a\u2028", "\u3000a\u3000", "a \x85 and b", "a AND b"]
    # calamine does not read the escapes of the characters that are none.
    texts += [] if name == "xlsx" else ["_x1999\uffff_", "\ufffe"]
    check_export_is_read_again(name, [build_exported_book(title=text, author=text, genre=text) for text in texts])


@pytest.mark.parametrize("name", ["ris", "bibtex"])
def test_blanks_that_other_programs_cut_off_are_not_written(name: str) -> None:
    data = write_books(name, [build_exported_book(title="\u3000a\x85b\u2028c\u3000", author="d\u2029", genre="\x0be")])
    text = data.decode().replace("\r\n", "\n")
    assert text.split("\n") == [*text.splitlines(), ""]
    assert not any("\u3000" in line for line in text.split("\n"))


def test_the_first_sign_beyond_ascii_tells_another_encoding() -> None:
    contents = {
        b"": False,
        b"abc": False,
        b"caf\xe9 au lait": True,
        b"caf\xe9": True,
        "é".encode() + b"\xe9": False,
        "abé€".encode() + b"\xe9": False,
        b"x" * (READ_BYTES - 1) + "é".encode(): False,
        b"x" * READ_BYTES + b"\xe9x": True,
        "é".encode() + b"x" * READ_BYTES + b"\xe9x": False,
    }
    assert {content: find_invalid_line(BytesIO(content))[1] for content in contents} == contents
