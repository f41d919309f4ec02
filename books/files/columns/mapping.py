"""Guesses which column of a file contains which field of a book."""

from collections.abc import Collection, Mapping, Sequence

from books.files.columns.dialects import find_dialect
from books.files.columns.names import COLUMN_COUNTS, COLUMN_NAMES, PLACES, simplify_name


def guess_mapping(columns: Sequence[str]) -> dict[str, str]:
    """Returns the column for each place, by the dialect of a program, else by name. Omits places without a column."""
    columns_by_name: dict[str, str] = {}
    for column in columns:
        columns_by_name.setdefault(simplify_name(column), column)
    # Other columns of a known program may mean something else. Only ISBNs are also searched by name.
    limits = COLUMN_COUNTS if find_dialect(columns).columns else {"isbn": COLUMN_COUNTS["isbn"]}
    mapping: dict[str, str] = {}
    for field, names in (find_dialect(columns).columns or COLUMN_NAMES).items():
        found = [columns_by_name[name] for name in map(simplify_name, names) if name in columns_by_name]
        mapping.update(zip(PLACES[field][: limits.get(field, 1)], found, strict=False))
    return mapping


def list_ignored(columns: Collection[str], mapping: Mapping[str, str]) -> list[str]:
    """Returns the columns that the mapping does not use."""
    taken = set(mapping.values())
    return [column for column in columns if column not in taken]
