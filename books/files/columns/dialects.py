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


def build_dialect(name: str, marks: Sequence[str], *columns: Sequence[str], number: str = "") -> TableDialect:
    """`columns` are in the order of REQUIRED_FIELDS: title, author, year, isbn and genre. `number` is the column with
    the number of the record.
    """
    numbers = {"id": [number]} if number else {}
    return TableDialect(name, marks, {**numbers, **dict(zip(REQUIRED_FIELDS, columns, strict=True))})


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
    build_dialect(
        "Libib",
        ["title", "creators", "ean_isbn13"],
        ["title"],
        ["creators"],
        ["publish_date"],
        ["ean_isbn13", "upc_isbn10"],
        ["tags", "group"],
    ),
    # It exports no year.
    build_dialect("StoryGraph", ["Title", "Authors", "ISBN/UID"], ["Title"], ["Authors"], [], ["ISBN/UID"], ["Tags"]),
    build_dialect(
        "Koha",
        ["biblionumber", "title"],
        ["title"],
        ["author"],
        ["copyrightdate", "publicationyear"],
        ["isbn"],
        ["subject", "itemtype"],
        number="biblionumber",
    ),
    build_dialect(
        "Koha",
        ["Title", "Main author"],
        ["Title"],
        ["Main author"],
        ["Publication date", "Copyright date"],
        ["ISBN"],
        ["Subjects", "Item type"],
    ),
    build_dialect(
        "Alma",
        ["MMS Id", "Title"],
        ["Title"],
        ["Author", "Creator"],
        ["Publication Date", "Date"],
        ["ISBN", "ISBN (13)"],
        ["Subjects", "Material Type"],
        number="MMS Id",
    ),
    # It exports no ISBN, but the numbers of editions.
    build_dialect(
        "Open Library",
        ["Work ID", "Title", "Edition ID"],
        ["Title"],
        ["Authors"],
        ["First Publish Year"],
        [],
        ["Subjects"],
        number="Edition ID",
    ),
)
# For files of unknown programs.
NO_DIALECT = TableDialect("", [], {})


def find_dialect(columns: Sequence[str]) -> TableDialect:
    """Returns the dialect of the program that writes these columns, else NO_DIALECT."""
    names = {simplify_name(column) for column in columns}
    found = (dialect for dialect in TABLE_DIALECTS if names.issuperset(map(simplify_name, dialect.marks)))
    return next(found, NO_DIALECT)
