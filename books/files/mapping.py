"""Guesses which column of a file has which member of a book."""

import re
from collections.abc import Sequence

from books.fields import fold
from books.members import MEMBER_TABLE

# Names of the columns of each member, folded and without signs; the first that a file has is taken.
COLUMN_NAMES = {"id": ("id", "bookid", "number", "nummer"), **{member.name: member.columns for member in MEMBER_TABLE}}
SIGNS_PATTERN = re.compile(r"[\W_]+")


def guess_mapping(columns: Sequence[str]) -> dict[str, str]:
    """Returns the column of each member for which there is one."""
    columns_by_name: dict[str, str] = {}
    for column in columns:
        columns_by_name.setdefault(SIGNS_PATTERN.sub("", fold(column)), column)
    return {
        member: next(columns_by_name[name] for name in names if name in columns_by_name)
        for member, names in COLUMN_NAMES.items()
        if not columns_by_name.keys().isdisjoint(names)
    }
