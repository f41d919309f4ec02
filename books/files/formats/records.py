"""What the readers of all formats return, and what the writers take."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from django.utils.formats import number_format

from books.members import MEMBER_TABLE, MEMBERS, Member

# The columns of formats that know no other, and of which a file of books has most.
COLUMNS = ("id", *MEMBERS)
# Those of exported files, and the values of a book for all but the last.
EXPORTED_COLUMNS = (*COLUMNS, "created_at")
get_values = attrgetter(*COLUMNS)
# A CSV file of rejected records begins with these columns.
REPORT_COLUMNS = ("line", "reason")
# What a reader reads at a time.
CHUNK_BYTES = 2**16
# Longer texts of records without valid values are cut off where they are shown.
MAX_SHOWN_TEXT = 200


class UnreadableFile(Exception):
    """The file, or the rest of it, cannot be read; the message says where and why."""


def name_member(name: str, sentence: str) -> str:
    """Returns the reason of a problem or a doubt. Its beginning is the same in all languages."""
    return f"{name}: {sentence}"


def format_count(number: int) -> str:
    """Returns the number with the separators of thousands that the active language has."""
    return number_format(number, force_grouping=True)


class NumberText(str):
    """A number that a cell of a spreadsheet holds where a text is expected."""

    __slots__ = ()


class Record(NamedTuple):
    """A book as a file has it.

    `line` is the line on which it begins; in a spreadsheet the row, in MARC 21 the number of the record. `values` are
    by column. `problem` says why there are none. `doubts` say what may have been read wrongly. `raw` is the record as a
    MARC file has it, and the cells of a CSV row that has too many or too few.
    """

    line: int
    values: Mapping[str, Any]
    raw: Any = None
    problem: str = ""
    doubts: tuple[str, ...] = ()


class Table(NamedTuple):
    """A file of books, whose records are read one by one. To iterate over them may raise UnreadableFile.

    `description` says how the file is read, `warning` what may be wrong with that, and `notes` what else
    is worth to know, such as what is left out.
    """

    columns: Sequence[str]
    records: Iterator[Record]
    description: str
    warning: str = ""
    notes: Sequence[str] = ()
    # Of CSV.
    separator: str = ","


class ExportedBook(msgspec.Struct, gc=False):
    """A book as files show it. The times are texts, in UTC: `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""

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


# Books are written in pages, each of which becomes a piece of the file.
Pages = Iterable[Sequence[ExportedBook]]
# Records and why they are rejected.
Rejected = Iterable[tuple[Record, str]]


AVAILABILITIES = {"available": True, "lent": False}


def iter_texts(book: ExportedBook) -> Iterator[tuple[Member, str]]:
    """Yields the text of each member."""
    for member in MEMBER_TABLE:
        value = getattr(book, member.name)
        yield member, format_availability(value) if isinstance(value, bool) else str(value)


def format_availability(available: bool) -> str:
    return "available" if available else "lent"
