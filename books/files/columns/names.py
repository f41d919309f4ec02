"""The names of columns that contain the fields of a book."""

import re

from books.fields import fold
from books.members import MEMBER_TABLE

# The column names of each field, folded and without punctuation. The first that a file has is used.
COLUMN_NAMES = {"id": ("id", "bookid", "number", "nummer"), **{member.name: member.columns for member in MEMBER_TABLE}}
# These fields may have several columns. If one is empty, the next is used.
COLUMN_COUNTS = {member.name: member.column_count for member in MEMBER_TABLE}
# A mapping has a column for each place: `isbn`, then `isbn_2`.
PLACES = {
    member: [member, *(f"{member}_{number}" for number in range(2, COLUMN_COUNTS.get(member, 1) + 1))]
    for member in COLUMN_NAMES
}
MEMBERS_BY_PLACE = {place: member for member, places in PLACES.items() for place in places}
# Columns with several values. The first value is used.
SEVERAL_VALUES_COLUMNS = frozenset({"bookshelves", "tags", "manualtags", "automatictags"})
SIGNS_PATTERN = re.compile(r"[\W_]+")


def simplify_name(column: str) -> str:
    """Returns the name for comparison: folded and without punctuation."""
    return SIGNS_PATTERN.sub("", fold(column))
