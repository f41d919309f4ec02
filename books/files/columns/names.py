"""The names of columns that contain the fields of a book."""

import re

from books.book_fields import BOOK_FIELDS
from books.fields import fold

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
SIGNS_PATTERN = re.compile(r"[\W_]+")


def simplify_name(column: str) -> str:
    """Returns the name for comparison: folded and without punctuation."""
    return SIGNS_PATTERN.sub("", fold(column))
