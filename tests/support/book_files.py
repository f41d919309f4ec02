"""Books as files have them, and what is read back."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from hypothesis import strategies as st

from books.files.columns.tables import find_dialect, guess_mapping
from books.files.formats.records import ExportedBook, Record
from books.files.formats.registry import FORMATS, REJECTED_WRITERS
from books.files.formats.xlsx_files import write_xlsx
from books.files.parsing import ImportRules, ParsedRecord, parse_records

TIME = "2026-01-31T09:30:00.000000Z"
FIELDS = ("id", "title", "author", "year", "isbn", "genre", "available")
AVAILABILITIES = {"true": True, "false": False}
# What some format gives a meaning to.
HOSTILE_PIECES = [
    *"'\" \t\r\n\x1d\x1e\x1f\x1b\x7f\x0b\x85\u2028\u3000=+-@＝;,<>&{}\\%~^$#_/.:é夏😀",
    *("&#x1D;", "_x000D_", "_x", "&amp;", " and ", "and", "ER  - ", "TY  - BOOK", "@book{", " /", "(pbk.)"),
    *("1999", "-44", "e\u0301", "--", "]]>", "\r\n", "'=1", '{\\char"A}', "\\'e"),
]
hostile_texts = (
    st.lists(
        st.sampled_from(HOSTILE_PIECES)
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufffe\uffff"), max_size=3),
        min_size=1,
        max_size=8,
    )
    .map("".join)
    .filter(str.strip)
)
hostile_books = st.builds(
    ExportedBook,
    id=st.integers(1, 2**63 - 1),
    title=hostile_texts,
    author=hostile_texts,
    year=st.integers(-(2**31), 2**31 - 1),
    isbn=hostile_texts,
    isbn13=st.none(),
    genre=hostile_texts,
    available=st.booleans(),
    created_at=st.just(TIME),
    updated_at=st.just(TIME),
    version=st.just(1),
)


def build_exported_book(**fields: Any) -> ExportedBook:
    values = {"id": 17, "title": "Emma", "author": "Jane Austen", "year": 1815, "isbn": "9780141439587"}
    others = {"isbn13": None, "genre": "Novel", "available": True, "created_at": TIME, "updated_at": TIME, "version": 1}
    return ExportedBook(**{**values, **others, **fields})


def write_books(name: str, books: Sequence[ExportedBook]) -> bytes:
    """Returns a file of this format, written in two pages."""
    pages = [books[:1], books[1:]]
    if write := FORMATS[name].write:
        return b"".join(write(pages))
    file = BytesIO()
    write_xlsx(pages, file)
    return file.getvalue()


def read_records(name: str, data: bytes, encoding_name: str = "") -> list[Record]:
    return list(FORMATS[name].read(BytesIO(data), encoding_name).records)


def parse_file(name: str, data: bytes, encoding_name: str = "", **options: Any) -> list[ParsedRecord]:
    """Returns the records with the columns that are guessed, matched by id."""
    table = FORMATS[name].read(BytesIO(data), encoding_name)
    is_exact = find_dialect(table.columns).is_exact
    rules = ImportRules(guess_mapping(table.columns), "id", is_exact=is_exact, format=name, **options)
    return list(parse_records(table.records, rules))


def get_fields(record: Record) -> dict[str, Any]:
    """Returns the fields with the types that they have in a book."""
    values = {name: record.values[name] for name in FIELDS}
    available = AVAILABILITIES.get(values["available"], values["available"])
    return {**values, "id": int(values["id"]), "year": int(values["year"]), "available": available}


def reject_records(name: str, data: bytes, encoding_name: str = "") -> tuple[str, bytes]:
    """Returns a file of rejected records that has all records of this file, and the name of its format."""
    table = FORMATS[name].read(BytesIO(data), encoding_name)
    rejected_name = name if name in REJECTED_WRITERS else "csv"
    rejected = ((record, record.problem or "isbn: Another\nbook has it.") for record in table.records)
    return rejected_name, b"".join(REJECTED_WRITERS[rejected_name](table, rejected))


def read_rejected(name: str, data: bytes, encoding_name: str = "") -> list[Record]:
    """Returns the records of a file of rejected records that has all records of this file."""
    return read_records(*reject_records(name, data, encoding_name))
