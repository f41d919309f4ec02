"""The programs whose tables are recognised by their columns. To support another program, add a row."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from books.book_fields import FIELDS, REQUIRED_FIELDS
from books.files.columns.names import simplify_name


class TableDialect(NamedTuple):
    """`marks` are columns that only files of this program have together. `columns` lists the columns of each field; the
    first that is not empty is used. All other columns are ignored.

    The texts of an exact file are not changed, whatever they contain.
    """

    name: str
    marks: Sequence[str]
    columns: Mapping[str, Sequence[str]]
    is_exact: bool = False


def build_dialect(name: str, marks: Sequence[str], *columns: Sequence[str]) -> TableDialect:
    """`columns` are in the order of REQUIRED_MEMBERS: title, author, year, isbn and genre."""
    return TableDialect(name, marks, dict(zip(REQUIRED_FIELDS, columns, strict=True)))


TABLE_DIALECTS = (
    TableDialect(
        "Library API",
        marks=["id", *REQUIRED_FIELDS, "created_at"],
        columns={name: [name] for name in ("id", *FIELDS)},
        is_exact=True,
    ),
    build_dialect(
        "Goodreads",
        ["Title", "Author l-f"],
        ["Title"],
        ["Author", "Author l-f"],
        ["Year Published", "Original Publication Year"],
        ["ISBN", "ISBN13"],
        ["Bookshelves"],
    ),
    build_dialect(
        "Zotero",
        ["Key", "Item Type", "Publication Year"],
        ["Title"],
        ["Author", "Editor"],
        ["Publication Year", "Date"],
        ["ISBN"],
        ["Manual Tags", "Automatic Tags"],
    ),
    build_dialect(
        "LibraryThing",
        ["Title", "Primary Author"],
        ["Title"],
        ["Primary Author", "Secondary Author"],
        ["Date"],
        ["ISBN", "ISBNs"],
        ["Tags"],
    ),
    build_dialect(
        "Calibre",
        ["title", "authors", "pubdate"],
        ["title"],
        ["authors"],
        ["pubdate"],
        ["isbn", "identifiers"],
        ["tags"],
    ),
)
# For files of unknown programs.
NO_DIALECT = TableDialect("", [], {})


def find_dialect(columns: Sequence[str]) -> TableDialect:
    """Returns the dialect of the program that writes these columns, else NO_DIALECT."""
    names = {simplify_name(column) for column in columns}
    found = (dialect for dialect in TABLE_DIALECTS if names.issuperset(map(simplify_name, dialect.marks)))
    return next(found, NO_DIALECT)
