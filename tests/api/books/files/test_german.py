"""What is wrong with files and records is said in German to who reads German."""

from collections.abc import Iterator
from datetime import date
from io import BytesIO

import pytest
from django.utils.translation import override

from books.files.formats.records import Table, UnreadableFile
from books.files.formats.registry import FORMATS
from books.files.matching import decide_records, read_books
from books.files.parsing import ImportRules, parse_records
from books.files.seen_records import SeenRecords
from tests.support.book_files import build_exported_book, write_books

MARC = write_books("marc", [build_exported_book()])
RULES = ImportRules({name: name for name in ("title", "author", "year", "isbn", "genre", "available", "id")}, "id")


@pytest.fixture(autouse=True)
def german() -> Iterator[None]:
    with override("de"):
        yield


def read(name: str, data: bytes) -> Table:
    return FORMATS[name].read(BytesIO(data), "")


def test_problems_of_records_are_german() -> None:
    """One of each module that reads a format."""
    problems = {
        ("csv", b"a,b\n1\n"): "row: Sie hat 1 Zelle, die erste Zeile 2.",
        ("jsonl", b"1\n"): "row: Das ist kein JSON-Objekt.",
        ("bibtex", b"@book{x, title}"): "record: Bei „title“ steht kein Feld.",
        ("ris", b"TY  - BOOK\r\n"): "record: Der Datensatz endet nicht mit einer Zeile ER.",
        ("marc", MARC[:24] + b"001009900000" + MARC[36:]): (
            "record: Das Inhaltsverzeichnis des Datensatzes passt nicht zu Feld 001."
        ),
        ("marcxml", b"<collection><record/></collection>"): "record: Der Datensatz hat keine Felder.",
    }
    found = {file: [record.problem for record in read(*file).records] for file in problems}
    assert found == {file: [problem] for file, problem in problems.items()}


def test_files_that_cannot_be_read_are_refused_in_german() -> None:
    reasons = {
        ("csv", b'a;b\n"x"y;z\n'): 'Zeile 2: Nach einem Anführungszeichen (") geht eine Zelle weiter.',
        ("csv", b"a,b\n" + b"x" * 131_073 + b"\n"): "Zeile 2: Eine Zelle hat mehr als 131.072 Zeichen.",
        ("csv", b"\xff\xfea\0\n\0\x00\xd8"): "Zeile 2 ist nicht in UTF-16.",
        ("marcxml", b"<a>\n</b>"): "Das XML hat einen Fehler in Zeile 2, Spalte 3, nach 0 Datensätzen.",
        ("xlsx", b"PK\x03\x04"): "Das ist keine Arbeitsmappe, die gelesen werden kann.",
    }
    for (name, data), reason in reasons.items():
        with pytest.raises(UnreadableFile) as error:
            list(read(name, data).records)
        assert str(error.value) == reason
    assert read("csv", b"\xef\xbb\xbfa;b\n").description == "CSV mit Semikolons, UTF-8 mit Bytereihenfolge-Markierung"


def test_what_is_wrong_with_values_is_said_in_german(db: None) -> None:
    reasons = {
        "T,A,1900,9.78014E+12,G,,": (
            "isbn: Eine Tabellenkalkulation hat die Zahl gerundet. isbn: Das ist keine gültige ISBN."
        ),
        "T,A,1,\0,G,,": "isbn: Das Feld enthält ein Zeichen, das nicht gespeichert werden kann.",
        "T,A,1,2,G,perhaps,": "available: Das ist weder true (verfügbar) noch false (ausgeliehen).",
        "T,A,1,2,G,,x": "id: Das ist keine ID eines Buchs.",
        "T,A,1,\udcff,G,,": "isbn: Hier stehen Bytes, die die Zeichenkodierung der Datei nicht kennt.",
        "T,A,1900,0141439513,G,,": "",
        "U,B,1900,0141439513,G,,": "isbn: Das Buch in Zeile 7 hat sie.",
        "V,C,1900,9780141439518,G,,": "isbn: Das Buch in Zeile 7 hat sie in anderer Schreibweise.",
    }
    lines = ["title,author,year,isbn,genre,available,id", *reasons]
    records = list(parse_records(read("csv", "\n".join(lines).encode(errors="surrogateescape")).records, RULES))
    verdicts = decide_records(records, RULES, read_books, SeenRecords(), date(2026, 1, 31))
    assert [verdict.reason for verdict in verdicts] == [*reasons.values()]
