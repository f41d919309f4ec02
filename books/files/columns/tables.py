"""Which column of a table contains which field of a book: by the program that wrote it, else by its name."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from books.book.fields import BOOK_FIELDS, FIELDS, REQUIRED_FIELDS
from books.files.formats.headers import simplify_name
from books.files.formats.record_kinds import GONE, describe_medium, describe_state

# The column names of each field, folded and without punctuation. The first that a file has is used.
COLUMN_NAMES = {"id": ("id", "bookid", "number", "nummer"), **{field.name: field.columns for field in BOOK_FIELDS}}
# These fields may have several columns. If one is empty, the next is used.
COLUMN_COUNTS = {field.name: field.column_count for field in BOOK_FIELDS}
# A mapping has a column for each place: `isbn`, then `isbn_2`.
PLACES = {
    field: [field, *(f"{field}_{number}" for number in range(2, COLUMN_COUNTS.get(field, 1) + 1))]
    for field in COLUMN_NAMES
}
FIELDS_BY_PLACE = {place: field for field, places in PLACES.items() for place in places}
# Columns with several values. The first value is used.
SEVERAL_VALUES_COLUMNS = frozenset(
    {"bookshelves", "tags", "manualtags", "automatictags", "keywords", "subjects", "schlagwörter"}
)


# Columns that name the kind of a record (`books.files.formats.record_kinds`), and those that may name it.
KIND_COLUMNS = frozenset(
    {"itemtype", "materialtype", "medienart", "medientyp", "mediatype", "recordtype", "documenttype"}
)
MEDIUM_COLUMNS = frozenset(
    {"media", "medium", "format", "binding", "type", "art", "materialart", "resourcetype", "typededocument", "soporte"}
)
# Columns that tell whether the library still has the book. The rest of what they tell is left out.
STATE_COLUMNS = frozenset(
    {*GONE, "lifecycle", "status", "itemstatus", "recordstatus", "circulationstatus", "zustand", "state"}
)


class TableDialect(NamedTuple):
    """`marks` are columns that only files of this program have together. `columns` lists the columns of each field; the
    first that is not empty is used. All other columns are ignored.

    The texts of an exact file are not changed, whatever they contain.
    """

    name: str
    marks: Sequence[str]
    columns: Mapping[str, Sequence[str]]
    is_exact: bool = False


def build_dialect(name: str, marks: str, *columns: str) -> TableDialect:
    """`columns` are those of title, author, year, isbn, genre and, if there is one, the number of the record."""
    named = zip((*REQUIRED_FIELDS, "id"), (text.split("|") if text else [] for text in columns), strict=False)
    return TableDialect(name, marks.split("|"), dict(named))


# The programs whose tables are recognised by their columns. To support another program, add a row.
TABLE_DIALECTS = (
    TableDialect(
        "Library API",
        marks=["id", *REQUIRED_FIELDS, "created_at"],
        columns={name: [name] for name in ("id", *FIELDS)},
        is_exact=True,
    ),
    build_dialect("Goodreads", "Title|Author l-f", "Title", "Author|Author l-f",
                  "Year Published|Original Publication Year", "ISBN|ISBN13", "Bookshelves"),
    build_dialect("Zotero", "Key|Item Type|Publication Year", "Title", "Author|Editor", "Publication Year|Date", "ISBN",
                  "Manual Tags|Automatic Tags"),
    build_dialect("LibraryThing", "Title|Primary Author", "Title", "Primary Author|Secondary Author", "Date",
                  "ISBN|ISBNs", "Tags"),
    build_dialect("Calibre", "title|authors|pubdate", "title", "authors", "pubdate", "isbn|identifiers", "tags"),
    build_dialect("Libib", "title|creators|ean_isbn13", "title", "creators", "publish_date", "ean_isbn13|upc_isbn10",
                  "tags|group"),
    # It exports no year.
    build_dialect("StoryGraph", "Title|Authors|ISBN/UID", "Title", "Authors", "", "ISBN/UID", "Tags"),
    build_dialect("Koha", "biblionumber|title", "title", "author", "copyrightdate|publicationyear", "isbn",
                  "subject|itemtype", "biblionumber"),
    build_dialect("Koha", "Title|Main author", "Title", "Main author", "Publication date|Copyright date", "ISBN",
                  "Subjects|Item type"),
    build_dialect("Alma", "MMS Id|Title", "Title", "Author|Creator", "Publication Date|Date", "ISBN|ISBN (13)",
                  "Subjects|Material Type", "MMS Id"),
    # It exports no ISBN, but the numbers of editions.
    build_dialect("Open Library", "Work ID|Title|Edition ID", "Title", "Authors", "First Publish Year", "", "Subjects",
                  "Edition ID"),
)  # fmt: skip
# For files of unknown programs.
NO_DIALECT = TableDialect("", [], {})


def find_dialect(columns: Sequence[str]) -> TableDialect:
    """Returns the dialect of the program that writes these columns, else NO_DIALECT."""
    names = {simplify_name(column) for column in columns}
    found = (dialect for dialect in TABLE_DIALECTS if names.issuperset(map(simplify_name, dialect.marks)))
    return next(found, NO_DIALECT)


def guess_mapping(columns: Sequence[str]) -> dict[str, str]:
    """Returns the column for each place, by the dialect of a program, else by name. Omits places without a column."""
    columns_by_name: dict[str, str] = {}
    for column in columns:
        columns_by_name.setdefault(simplify_name(column), column)
    # Other columns of a known program may mean something else. Only ISBNs are also searched by name.
    known_columns = find_dialect(columns).columns
    limits = COLUMN_COUNTS if known_columns else {"isbn": COLUMN_COUNTS["isbn"]}
    mapping: dict[str, str] = {}
    for field, names in (known_columns or COLUMN_NAMES).items():
        found = [columns_by_name[name] for name in map(simplify_name, names) if name in columns_by_name]
        mapping.update(zip(PLACES[field][: limits.get(field, 1)], found, strict=False))
    return mapping


def list_kind_columns(
    columns: Collection[str], mapping: Mapping[str, str]
) -> list[tuple[str, Callable[[str], tuple[str, str]]]]:
    """Returns the columns that tell what a record is, and what describes their texts."""
    names = {column: simplify_name(column) for column in columns}
    free = {column: name for column, name in names.items() if column not in mapping.values()}
    return [
        *((column, partial(describe_medium, is_kind=True)) for column, name in names.items() if name in KIND_COLUMNS),
        *((column, partial(describe_medium, is_kind=False)) for column, name in free.items() if name in MEDIUM_COLUMNS),
        *((column, partial(describe_state, column=column)) for column, name in free.items() if name in STATE_COLUMNS),
    ]


def list_ignored(columns: Collection[str], mapping: Mapping[str, str]) -> list[str]:
    read = KIND_COLUMNS | MEDIUM_COLUMNS
    return [column for column in columns if column not in mapping.values() and simplify_name(column) not in read]
