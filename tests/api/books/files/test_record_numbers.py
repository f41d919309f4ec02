"""Books without an ISBN have the number of their record, if the import so chooses."""

from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import pymarc
import pytest
from django.core.management import CommandError, call_command

from books.book.isbn import build_record_number, find_isbn, normalize_isbn, split_record_number
from books.files.formats.registry import FORMATS, find_format
from books.files.parsing import ParsedRecord
from books.models import Book
from tests.support.book_files import build_exported_book, parse_file, read_records, write_books

pytestmark = pytest.mark.django_db
# Ten digits with the check digit of an ISBN, as catalogues number their records.
PPN = "0141439513"


def write_marc(number: str, source: str = "", **fields: Any) -> bytes:
    [record] = pymarc.MARCReader(write_books("marc", [build_exported_book(**fields)]))
    record.remove_fields("001", "020")
    for tag, text in (("001", number), ("003", source)):
        if text:
            record.add_ordered_field(pymarc.Field(tag, data=text))
    return bytes(record.as_marc())


def write_xml(number: str, source: str) -> bytes:
    [record] = pymarc.MARCReader(write_marc(number, source))
    return bytes(pymarc.record_to_xml(record))


ROW = "Emma,Jane Austen,1815,,Novel"
# A file of one record without an ISBN, and what its book has for it.
FILES: list[tuple[str, bytes, str]] = [
    ("a.mrc", write_marc("123456789", "DE-101"), "(DE-101)123456789"),
    ("b.mrc", write_marc("  84231405 ", "DLC"), "(DLC)84231405"),
    ("c.mrc", write_marc("17"), "no. 17"),
    ("d.mrc", write_marc("18", "A library (old)"), "no. 18"),
    ("e.xml", write_xml(PPN, "DE-627"), f"(DE-627){PPN}"),
    ("f.bib", b"@book{austen:1815, title={Emma}, author={Austen}, year=1815, keywords={N}}", "no. austen:1815"),
    ("g.ris", b"TY  - BOOK\nID  - 21\nTI  - Emma\nAU  - Austen\nPY  - 1815\nKW  - N\nER  - \n", "no. 21"),
    ("h.csv", f"Nummer,title,author,year,isbn,genre\nB/7,{ROW}\n".encode(), "no. B/7"),
    ("i.jsonl", b'{"id": 22, "title": "T", "author": "A", "year": 1815, "isbn": null, "genre": "N"}', "no. 22"),
]
NUMBERS = [number for _name, _data, number in FILES]


def import_file(path: Path, **options: Any) -> None:
    """The records have the same title and author, which is a warning."""
    call_command("import_books", path, on_match="leave", match_by="id", **{"use_number": True, **options})


def parse_one(name: str, data: bytes, **options: Any) -> ParsedRecord:
    [record] = parse_file(find_format(BytesIO(data), name).name, data, **options)
    return record


def test_the_number_of_a_record_is_stored_with_its_source() -> None:
    records = [parse_one(name, data, use_number=True) for name, data, _number in FILES]
    assert [(record.values["isbn"], record.has_number) for record in records] == [(number, True) for number in NUMBERS]


def test_no_number_is_used_unless_it_is_chosen() -> None:
    files = [*FILES, ("a.csv", f"title,author,year,isbn,genre\n{ROW.replace(',,', ',(hbk)12345,')}\n".encode(), "")]
    records = [parse_one(name, data) for name, data, _number in files]
    assert [record.values.get("isbn") for record in records] == [*[None] * len(FILES), "(hbk)12345"]


def test_the_command_says_how_many_records_have_no_isbn_and_finds_them_again_by_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.mrc"
    path.write_bytes(write_marc("123456789", "DE-101"))
    with pytest.raises(CommandError, match="1 record not imported"):
        import_file(path, use_number=False)
    for _ in ("added", "found again"):
        import_file(path)
        assert Book.objects.get().isbn == "(DE-101)123456789"
    assert Book.objects.filter(isbn13=None).exists()
    printed = capsys.readouterr()
    assert printed.err.count("1 of the first 1 records has no ISBN. It can be left out, or use its number.") == 3
    assert printed.out.count("1 books added.\n1 by the number of their record.\n") == 1


def test_exports_return_the_number_where_it_came_from() -> None:
    books = [build_exported_book(id=place, isbn=number) for place, number in enumerate(NUMBERS, 1)]
    records = list(pymarc.MARCReader(write_books("marc", books)))
    found = [[field.data for field in record.get_fields("003", "001")] for record in records]
    assert found[:3] == [["123456789", "DE-101"], ["84231405", "DLC"], ["17"]]
    assert not any(record.get_fields("020") for record in records)
    ris, bibtex = write_books("ris", books).decode(), write_books("bibtex", books).decode()
    assert [text in ris for text in ("ID  - 21\r\n", "ID  - (DE-101)123456789\r\n", "SN  - ")] == [True, True, False]
    assert "@book{austen:1815,\n  title" in bibtex


def test_what_is_exported_has_its_number_again() -> None:
    for name, number in product(FORMATS, NUMBERS):
        data = write_books(name, [build_exported_book(isbn=number)])
        assert parse_one("books", data, use_number=True).values["isbn"] == number, (name, number)


def test_a_book_with_an_isbn_keeps_it() -> None:
    """Tables of ours, and entries whose key is ours, keep whatever else is in its place."""
    for format, isbn in (("marc", "9780141439587"), ("csv", "0317-8471"), ("bibtex", "0317-8471")):
        data = write_books(format, [build_exported_book(id=7, isbn=isbn)])
        assert parse_one("books", data, use_number=True).values["isbn"] == isbn


def test_a_number_with_a_source_is_no_isbn() -> None:
    assert [normalize_isbn(text) for text in (f"(DE-627){PPN}", f"(OCoLC){PPN}", f"{PPN} (pbk.)")] == [
        None,
        None,
        "9780141439518",
    ]
    assert [
        build_record_number(*pair) for pair in ((" ", "DE-101"), ("7", "?"), ("(DE-101)7", ""), ("a\x1fb", "DE-1"))
    ] == [
        "",
        "no. 7",
        "(DE-101)7",
        "no. a\x1fb",
    ]
    assert find_isbn(f"(DE-627){PPN}") == ""
    assert split_record_number("(DE-101)7 a") == ("DE-101", "7 a")
    assert split_record_number("no. a\x1fb") == split_record_number("(pbk.) 7") == ("", "")
    [record] = read_records("bibtex", write_books("bibtex", [build_exported_book(isbn="(DE-101)7")]))
    assert record.values["isbn"] == "(DE-101)7"
