"""Reasons are in the words of a file and the language of its reader, and counted without its texts and numbers."""

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils.translation import gettext as _
from django.utils.translation import override

from books.book.fields import REQUIRED_FIELDS
from books.files.formats.records import Record, UnreadableFile
from books.files.parsing import ImportRules, get_fields, parse_records
from books.files.reasons import (
    EARLIER,
    EARLIER_IN_OTHER_WRITING,
    FIELD_NAMES,
    MAX_GROUP_LENGTH,
    MAX_GROUPS,
    REASONS_BY_CODE,
    SAME_BOOK,
    add_reasons,
    describe_line,
    group_reason,
    list_groups,
    name_place,
)
from books.search.quality import IMPROBABLE_YEAR
from tests.support.book_files import build_exported_book, parse_file, read_records, write_books

ISBNS = ["9780141439587", "", "", "0141439580", "LOC 17", "9780141439587"]


@pytest.mark.usefixtures("db")
def test_the_command_names_fields_and_records_and_counts_the_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "books.mrc"
    books = [build_exported_book(id=number, isbn=isbn) for number, isbn in enumerate(ISBNS, 1)]
    file.write_bytes(write_books("marc", books))
    with pytest.raises(CommandError, match="5 records not imported"):
        call_command("import_books", file, dry_run=True)
    lines = [line for line in capsys.readouterr().err.splitlines() if ": " in line]
    assert lines[:5] == [
        "Record 2: 020$a: It is missing.",
        "Record 3: 020$a: It is missing.",
        "Record 4: 020$a: The book of record 1 has it in another writing.",
        "Record 5: 020$a: This is no valid ISBN.",
        "Record 6: 020$a: The book of record 1 has it.",
    ]
    assert lines[5] == "2 × 020$a: It is missing."
    assert set(lines[6:]) == {
        "1 × 020$a: The book of record … has it in another writing.",
        "1 × 020$a: This is no valid ISBN.",
        "1 × 020$a: The book of record … has it.",
        "What records leave empty: --default genre=TEXT; an ISBN: --use-number.",
    }


def test_no_sentence_of_a_validator_reaches_a_person() -> None:
    """Each error that a cell can cause has a reason of our own, in both languages."""
    cells: list[Any] = [None, "", " ", "x" * 1_001, "a\0b", "a\ud800b", 5, 1.5, 10**30, True, [], "MCM", 2**31]
    for language in ("en", "de"):
        with override(language):
            reasons = [str(_(reason)).partition("%")[0] for reason in REASONS_BY_CODE.values()]
            reasons += [str(IMPROBABLE_YEAR), "“", "„"]
            for name, cell in product(REQUIRED_FIELDS, cells):
                [record] = parse_records([Record(1, {name: cell})], ImportRules({name: name}))
                sentence = record.problem.removeprefix(f"{name}: ")
                assert not sentence or any(map(sentence.startswith, reasons)), (name, cell, sentence)
    fields = get_fields("en").values()
    validators = [validator for field in fields for validator in field.validators]
    assert {str(getattr(validator, "code", "")) for validator in validators} <= REASONS_BY_CODE.keys()


def test_a_reason_names_the_field_as_its_format_does() -> None:
    for name, fields in FIELD_NAMES.items():
        data = write_books(name, [build_exported_book(isbn="x" * 65)])
        [record] = parse_file(name, data)
        assert record.problem == f"{fields['isbn']}: It is longer than 64 characters."


def test_a_line_is_named_only_where_there_are_lines() -> None:
    with override("en"):
        assert [name_place(name, 7) for name in ("csv", "", "marc", "marcxml")] == [
            "Line 7", "Line 7", "Record 7", "Record 7",
        ]  # fmt: skip
        for sentences in (EARLIER, EARLIER_IN_OTHER_WRITING, SAME_BOOK):
            assert "line 7" in describe_line(sentences, "ris", 7)
            assert "record 7" in describe_line(sentences, "marcxml", 7)


def test_reasons_that_differ_in_numbers_and_texts_are_one_group() -> None:
    groups = {
        "year: “c1999” is no year.": "year: … is no year.",
        "Jahr: „c1999“ ist kein Jahr.": "Jahr: … ist kein Jahr.",
        "020$a: The book of record 12 has it.": "020$a: The book of record … has it.",
        "ISBN13: It is missing.": "ISBN13: It is missing.",
        "“" * 1_000_000: "“" * MAX_GROUP_LENGTH,
    }
    assert {reason: group_reason(reason) for reason in groups} == groups


def test_there_are_never_very_many_groups() -> None:
    names = [f"{chr(ord('a') + number // 26)}{chr(ord('a') + number % 26)}" for number in range(MAX_GROUPS + 20)]
    groups = add_reasons(add_reasons(Counter(), names[:30]), [*names[30:], names[0]])
    assert len(groups) == MAX_GROUPS + 1
    listed = list_groups(groups)
    assert (listed[0], listed[-1]) == ((2, names[0]), (20, "other reasons"))
    assert list_groups(Counter(names)) == []


# One of each module that says what is wrong with a file.
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


@override("de")
def test_problems_of_records_and_values_are_german() -> None:
    found = {file: [record.problem for record in read_records(*file)] for file in PROBLEMS}
    assert found == {file: [problem] for file, problem in PROBLEMS.items()}
    lines = ["title,author,year,isbn,genre,available,id", *VALUES]
    records = parse_file("csv", "\n".join(lines).encode(errors="surrogateescape"))
    assert [" ".join([record.problem, *record.warnings]).strip() for record in records] == [*VALUES.values()]


@override("de")
def test_files_that_cannot_be_read_are_refused_in_german() -> None:
    for file, reason in REFUSALS.items():
        with pytest.raises(UnreadableFile) as error:
            read_records(*file)
        assert str(error.value) == reason
