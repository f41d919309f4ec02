"""Explains to users why records are rejected, with the file's own names of fields and records.

Readers describe records that they cannot parse; all other messages about records are here.
"""

import re
from collections import Counter
from collections.abc import Iterable

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from books.book.fields import BOOK_FIELDS
from books.files.columns.cells import UnknownDate
from books.files.formats.records import MAX_SHOWN_NAME

MARC_FIELDS = {"id": "001", **{field.name: "{0}${2}".format(*field.marc) for field in BOOK_FIELDS}}
# How formats without columns name their fields.
FIELD_NAMES = {
    "marc": MARC_FIELDS,
    "marcxml": MARC_FIELDS,
    "bibtex": {field.name: field.bibtex[0] for field in BOOK_FIELDS},
    "ris": {"id": "ID", **{field.name: field.ris[0] for field in BOOK_FIELDS}},
}
# Formats that number records instead of lines.
NUMBERED_FORMATS = ("marc", "marcxml")
# Each sentence about a line is followed by the one about the number of a record.
PLACE = gettext_noop("Line %(line)s"), gettext_noop("Record %(line)s")
EARLIER = gettext_noop("The book on line %(line)s has it."), gettext_noop("The book of record %(line)s has it.")
EARLIER_IN_OTHER_WRITING = (
    gettext_noop("The book on line %(line)s has it in another writing."),
    gettext_noop("The book of record %(line)s has it in another writing."),
)
SAME_BOOK = (
    gettext_noop("It is about the same book as line %(line)s."),
    gettext_noop("It is about the same book as record %(line)s."),
)
OWNED = gettext_noop("Another book has it.")
OWNED_IN_OTHER_WRITING = gettext_noop("Book %(id)s has it in another writing.")
SAME_WORK = gettext_noop("Book %(id)s has the same title and author.")
SAME_MAIN_TITLE = gettext_noop("Book %(id)s has the same title but for the subtitle, and the same author.")
ISBN_OF_OTHER_WORK = gettext_noop("Book %(id)s has this ISBN, and another title and author.")
NUMBER_OF_OTHER_WORK = gettext_noop("Book %(id)s has this number, and another title or author.")
ABSENT = gettext_noop("It is missing.")
UNKNOWN_AVAILABILITY = gettext_noop("It is neither true (available) nor false (lent).")
UNKNOWN_ID = gettext_noop("It is no ID of a book.")
NO_NUMBER = gettext_noop("It is no whole number.")
UNDECODABLE = gettext_noop("It has bytes that the encoding of the file does not know.")
# The reasons for the errors of validators, by their codes.
REASONS_BY_CODE = {
    **dict.fromkeys(("blank", "null", "required"), ABSENT),
    **dict.fromkeys(("int_type", "int_from_float"), NO_NUMBER),
    "string_type": gettext_noop("It is no text."),
    "max_length": gettext_noop("It is longer than %(count)s characters."),
    "max_value": gettext_noop("It is too large."),
    "min_value": gettext_noop("It is too small."),
    "null_characters_not_allowed": gettext_noop("It has a character that cannot be stored."),
    "surrogate_characters_not_allowed": UNDECODABLE,
}
# The parts that differ within a group of reasons: quoted texts, and numbers that do not belong to a field's name.
VARIABLE_PARTS = re.compile(r"“[^”]*”|„[^“]*“|(?<![\w$])[0-9]+(?:[.,][0-9]+)*(?![\w$])")
# Digits of other scripts, and full-width ones.
OTHER_DIGITS = re.compile(r"(?![0-9])\d")
MAX_GROUPS, MAX_GROUP_LENGTH = 50, 300
# The group for all reasons outside the largest groups.
OTHER_REASONS = ""


def name_place(format_name: str, line: int) -> str:
    """Returns the position of a record in its file, as text."""
    return describe_line(PLACE, format_name, line)


def describe_line(sentences: tuple[str, str], format_name: str, line: int) -> str:
    return _(sentences[format_name in NUMBERED_FORMATS]) % {"line": line}


def describe_year(text: str) -> str:
    if isinstance(text, UnknownDate):
        return _("The date is not known: Calibre writes 1 January 101 then.")
    if not text.strip():
        return _(ABSENT)
    sentence = _("Write “%(text)s” in the digits 0 to 9.") if OTHER_DIGITS.search(text) else _("“%(text)s” is no year.")
    return sentence % {"text": text.strip()[:MAX_SHOWN_NAME]}


def group_reason(reason: str) -> str:
    """Returns the part of a reason that it shares with reasons that differ only in numbers and in texts of the file."""
    # A cell can make it as long as a record, and the pattern searches the end of each quote.
    return VARIABLE_PARTS.sub("…", reason[:MAX_GROUP_LENGTH])


def add_reasons(groups: Counter[str], reasons: Iterable[str]) -> Counter[str]:
    """Returns the numbers of reasons by group, with these reasons added. The number of groups is limited."""
    counts = Counter(groups)
    for group in map(group_reason, reasons):
        counts[group if group in counts or len(counts) < MAX_GROUPS else OTHER_REASONS] += 1
    return counts


def list_groups(groups: Counter[str]) -> list[tuple[int, str]]:
    """Returns the numbers and the groups, largest first and the rest last; empty if every reason is different."""
    if all(count == 1 for count in groups.values()):
        return []
    ordered = sorted(groups.items(), key=lambda item: (item[0] == OTHER_REASONS, -item[1]))
    return [(count, group or _("other reasons")) for group, count in ordered]
