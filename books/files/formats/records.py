"""The types that the readers of all formats return, and that the writers take."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from books.book.fields import BOOK_FIELDS, FIELDS, BookField

# The columns of formats without columns of their own. Most files of books have them.
COLUMNS = ("id", *FIELDS)
# The columns of exported files. All but the last are values of a book.
EXPORTED_COLUMNS = (*COLUMNS, "created_at")
get_values = attrgetter(*COLUMNS)
# The first columns of a CSV file of rejected records.
REPORT_COLUMNS = ("line", "reason")
# The number of bytes that a reader reads at once.
READ_BYTES = 2**16
# A certain year as catalogues write it: in brackets if it is not from the title page, or as a copyright year.
SURE_YEAR = re.compile(r"\[?(?:c(?:op)?\.?|p\.?|©|℗|copyright)? ?(?P<year>[0-9]{4})\]?[ .,;:)]*", re.IGNORECASE)
# Between keywords, the strongest first. A heading with subdivisions may contain commas.
SURE_SEPARATORS = ("|", ";")
VALUE_SEPARATORS = (*SURE_SEPARATORS, "--", ",")
# As Python writes a list of texts, and what separates them.
LIST_TEXT, LIST_SEPARATOR = re.compile(r"\[['\"].*['\"]\]", re.DOTALL), re.compile(r"['\"], ?['\"]")
# Longer texts are shortened when invalid records are shown.
MAX_SHOWN_TEXT = 200
# The limit of all values of a record together.
MAX_RECORD_CHARACTERS = 2**20
# At most so many names of what is left out are listed, and so many characters of each.
MAX_LISTED, MAX_SHOWN_NAME = 20, 64


class UnreadableFile(Exception):
    """The file, or the rest of it, cannot be read. The message says where and why."""


class UnreadableRecord(Exception):
    """The message says what is wrong with one record. The others can be read."""


def split_values(text: str) -> list[str]:
    """Returns the values in a text of keywords, without blank ones."""
    if LIST_TEXT.fullmatch(text):
        return [value for value in LIST_SEPARATOR.split(text[2:-2]) if value.strip()]
    separator = next((separator for separator in VALUE_SEPARATORS if separator in text), ",")
    values = [text] if separator == "--" else text.split(separator)
    return [value.strip() for value in values if value.strip()]


def name_field(name: str, sentence: str) -> str:
    """Returns the reason for an error or a warning. Its beginning is the same in all languages."""
    return f"{name}: {sentence}"


def format_count(number: int) -> str:
    """Returns the number with the thousands separators of the active language."""
    return number_format(number, force_grouping=True)


def describe_too_long(limit: int) -> str:
    return _("It has more than %(count)s characters.") % {"count": format_count(limit)}


def describe_left_out(left_out: Mapping[str, int]) -> str:
    """Returns the note about the parts of a file that no record shows, most frequent first; empty if there are none."""
    counted = sorted(left_out.items(), key=lambda item: (-item[1], item[0]))
    names = [f"{name[:MAX_SHOWN_NAME]} ({format_count(count)})" for name, count in counted[:MAX_LISTED]]
    rest = ["…"] if counted[MAX_LISTED:] else []
    return _("Left out: %(columns)s.") % {"columns": ", ".join([*names, *rest])} if names else ""


class NumberText(str):
    """A number, date, time or truth in a spreadsheet cell, which may have been another text."""

    __slots__ = ()


class Record(NamedTuple):
    """A record of a file, about one book.

    `line` is its first line; in a spreadsheet its row, in MARC 21 its number. `values` are by column. `problem` says
    why there are none. `warnings` are warnings about uncertain values. `raw` is the record of a file of MARC, or the
    cells of a CSV row with too many or too few cells. `number` is the number of the record (`books.book.isbn`) in
    formats without columns.
    """

    line: int
    values: Mapping[str, Any]
    raw: Any = None
    problem: str = ""
    warnings: tuple[str, ...] = ()
    number: str = ""


class Table(NamedTuple):
    """A file of books, whose records are read one by one. Iteration may raise UnreadableFile.

    `description` says how the file is read, `warning` what may be wrong with that, and `notes` contain other remarks,
    such as ignored columns. `left_out` counts what no record shows, by name: sheets, fields. It grows with the records.
    """

    columns: Sequence[str]
    records: Iterator[Record]
    description: str
    warning: str = ""
    notes: Iterable[str] = ()
    # Only for CSV.
    separator: str = ","
    left_out: Mapping[str, int] = {}


class ExportedBook(msgspec.Struct, gc=False):
    """A book as files show it. The times are UTC texts: `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""

    id: int
    title: str
    author: str
    year: int
    isbn: str
    isbn13: str | None
    genre: str
    available: bool
    created_at: str
    updated_at: str
    version: int


# Books are written page by page. Each page becomes a part of the file.
Pages = Iterable[Sequence[ExportedBook]]
# Rejected records with their reasons.
Rejected = Iterable[tuple[Record, str]]
AVAILABILITIES = {"available": True, "lent": False}


def read_availability(text: str, place: str, left_out: Counter[str]) -> bool | str:
    """Returns "" for the text of another program, which has something else in this place, and counts it."""
    if text and text not in AVAILABILITIES:
        left_out[place] += 1
    return AVAILABILITIES.get(text, "")


def iter_texts(book: ExportedBook) -> Iterator[tuple[BookField, str]]:
    for book_field in BOOK_FIELDS:
        value = getattr(book, book_field.name)
        yield book_field, str(value) if not isinstance(value, bool) else "available" if value else "lent"
