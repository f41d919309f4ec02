"""Reasons are in the words of a file, and those that differ only in its texts and numbers are counted together."""

from collections import Counter
from pathlib import Path

import pymarc
import pytest
from django.core.management import CommandError, call_command
from django.utils.translation import override

from books.files.reasons import (
    MAX_GROUP_LENGTH,
    MAX_GROUPS,
    add_reasons,
    describe_earlier,
    describe_other_writing,
    describe_same_book,
    group_reason,
    list_groups,
    name_place,
)
from tests.support.book_files import build_exported_book, write_books

RECORDS = [{"isbn": "9780141439587"}, {}, {}, {"isbn": "0141439580"}, {"isbn": "LOC 17"}, {"isbn": "9780141439587"}]


def write_marc() -> bytes:
    """Returns records that have all but an ISBN, and this one as each says."""
    records = []
    for number, values in enumerate(RECORDS):
        [record] = pymarc.MARCReader(write_books("marc", [build_exported_book(id=number + 1)]))
        record.remove_fields("020")
        for text in values.values():
            subfield = pymarc.Subfield("a", text)
            record.add_field(pymarc.Field("020", pymarc.Indicators(" ", " "), [subfield]))
        records.append(record.as_marc())
    return b"".join(records)


@pytest.mark.usefixtures("db")
def test_the_command_names_fields_and_records_and_counts_the_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "books.mrc"
    file.write_bytes(write_marc())
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
    }


def test_a_line_is_named_only_where_there_are_lines() -> None:
    with override("en"):
        assert [name_place(name, 7) for name in ("csv", "", "marc", "marcxml")] == [
            "Line 7", "Line 7", "Record 7", "Record 7",
        ]  # fmt: skip
        sentences = (describe_earlier, describe_other_writing, describe_same_book)
        assert all("line 7" in describe("ris", 7) for describe in sentences)
        assert all("record 7" in describe("marcxml", 7) for describe in sentences)


@pytest.mark.parametrize(
    ("reason", "group"),
    [
        ("year: “c1999” is no year.", "year: … is no year."),
        ("Jahr: „c1999“ ist kein Jahr.", "Jahr: … ist kein Jahr."),
        ("020$a: The book of record 12 has it.", "020$a: The book of record … has it."),
        ("ISBN13: It is missing.", "ISBN13: It is missing."),
        ("x" * 1_000, "x" * MAX_GROUP_LENGTH),
        ("“" * 1_000_000, "“" * MAX_GROUP_LENGTH),
    ],
)
def test_reasons_that_differ_in_numbers_and_texts_are_one_group(reason: str, group: str) -> None:
    assert group_reason(reason) == group


def test_there_are_never_very_many_groups() -> None:
    names = [f"{chr(ord('a') + number // 26)}{chr(ord('a') + number % 26)}" for number in range(MAX_GROUPS + 20)]
    groups = add_reasons(add_reasons(Counter(), names[:30]), [*names[30:], names[0]])
    assert len(groups) == MAX_GROUPS + 1
    listed = list_groups(groups)
    assert (listed[0], listed[-1]) == ((2, names[0]), (20, "other reasons"))
    assert list_groups(Counter(names)) == []
