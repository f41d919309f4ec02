"""What is wrong with files and records is said in German to who reads German. One of each module that says it."""

from collections.abc import Iterator

import pytest
from django.utils.translation import override

from books.files.formats.records import UnreadableFile
from tests.support.book_files import build_exported_book, parse_file, read_records, write_books

MARC = write_books("marc", [build_exported_book()])
PROBLEMS = {
    ("csv", b"a,b\n1\n"): "row: Sie hat 1 Zelle, die erste Zeile 2.",
    ("jsonl", b"1\n"): "row: Das ist kein JSON-Objekt.",
    ("bibtex", b"@book{x, title}"): "record: Bei „title“ steht kein Feld.",
    ("ris", b"TY  - BOOK\r\n"): "record: Der Datensatz endet nicht mit einer Zeile ER.",
    ("marc", MARC[:24] + b"001009900000" + MARC[36:]): (
        "record: Das Inhaltsverzeichnis des Datensatzes passt nicht zu Feld 001."
    ),
    ("marcxml", b"<collection><record/></collection>"): "record: Der Datensatz hat keine Felder.",
}
REFUSALS = {
    ("csv", b'a;b\n"x"y;z\n'): 'Zeile 2: Nach einem Anführungszeichen (") geht eine Zelle weiter.',
    ("csv", b"a,b\n" + b"x" * 131_073 + b"\n"): "Zeile 2: Eine Zelle hat mehr als 131.072 Zeichen.",
    ("csv", b"\xff\xfea\0\n\0\x00\xd8"): "Zeile 2 ist nicht in UTF-16.",
    ("marcxml", b"<a>\n</b>"): "Das XML hat einen Fehler in Zeile 2, Spalte 3, nach 0 Datensätzen.",
    ("xlsx", b"PK\x03\x04"): "Das ist keine Arbeitsmappe, die gelesen werden kann.",
}
VALUES = {
    "T,A,1900,9.78014E+12,G,,": "isbn: Eine Tabellenkalkulation hat die Zahl gerundet.",
    "T,A,1,\0,G,,": "isbn: Das Feld enthält ein Zeichen, das nicht gespeichert werden kann.",
    "T,A,1,2,G,perhaps,": "available: Das ist weder true (verfügbar) noch false (ausgeliehen).",
    "T,A,1,2,G,,x": "id: Das ist keine ID eines Buchs.",
    "T,A,1,\udcff,G,,": "isbn: Hier stehen Bytes, die die Zeichenkodierung der Datei nicht kennt.",
}


@pytest.fixture(autouse=True)
def german() -> Iterator[None]:
    with override("de"):
        yield


def test_problems_of_records_and_values_are_german() -> None:
    found = {file: [record.problem for record in read_records(*file)] for file in PROBLEMS}
    assert found == {file: [problem] for file, problem in PROBLEMS.items()}
    lines = ["title,author,year,isbn,genre,available,id", *VALUES]
    records = parse_file("csv", "\n".join(lines).encode(errors="surrogateescape"))
    assert [" ".join([record.problem, *record.warnings]).strip() for record in records] == [*VALUES.values()]


def test_files_that_cannot_be_read_are_refused_in_german() -> None:
    for file, reason in REFUSALS.items():
        with pytest.raises(UnreadableFile) as error:
            read_records(*file)
        assert str(error.value) == reason
