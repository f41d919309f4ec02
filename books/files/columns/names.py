"""The names of the columns that have the members of a book."""

import re

from books.fields import fold
from books.members import MEMBER_TABLE

# Names of the columns of each member, folded and without signs; the first that a file has is taken.
COLUMN_NAMES = {"id": ("id", "bookid", "number", "nummer"), **{member.name: member.columns for member in MEMBER_TABLE}}
# Of these, further columns count where the ones before have nothing.
COLUMN_COUNTS = {member.name: member.column_count for member in MEMBER_TABLE}
# A mapping has the column of each place: `isbn`, then `isbn_2`.
PLACES = {
    member: [member, *(f"{member}_{number}" for number in range(2, COLUMN_COUNTS.get(member, 1) + 1))]
    for member in COLUMN_NAMES
}
MEMBERS_BY_PLACE = {place: member for member, places in PLACES.items() for place in places}
# Columns of several values, of which the first one counts.
SEVERAL_VALUES_COLUMNS = frozenset({"bookshelves", "tags", "manualtags", "automatictags"})
SIGNS_PATTERN = re.compile(r"[\W_]+")


def simplify_name(column: str) -> str:
    """Returns the name as it is compared: folded and without signs."""
    return SIGNS_PATTERN.sub("", fold(column))
