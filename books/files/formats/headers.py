"""The header of a table, which names its columns."""

import re
from collections.abc import Sequence
from itertools import pairwise
from string import ascii_uppercase
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from books.book.texts import fold
from books.files.formats.records import MAX_LISTED, REPORT_COLUMNS, UnreadableFile, name_field

# A text between quotation marks that CSV does not know.
QUOTED_PATTERN = re.compile("['‘“„«].+['’”“»]")
SIGNS_PATTERN = re.compile(r"[\W_]+")


class TableHeader(NamedTuple):
    """`texts` are the cells after the first `start` columns, which only a rejected-records file has.

    A column without a name has the text "".
    """

    texts: Sequence[str]
    start: int

    @property
    def columns(self) -> list[str]:
        return [text for text in self.texts if text]

    def warn_cells(self, cells: Sequence[str]) -> tuple[str, ...]:
        """Warns about cells to the right of the last named column, where a separator too many moves them."""
        if self.texts[-1:] != [""] and len(cells) <= len(self.texts):
            return ()
        width = max((number for number, text in enumerate(self.texts, 1) if text), default=0)
        sentence = _("It has cells to the right of the named columns.")
        return (name_field("row", sentence),) if any(cells[width:]) else ()

    def list_notes(self) -> list[str]:
        """Lists the columns without a name, because users cannot choose them."""
        letters = [name_column(self.start + number) for number, text in enumerate(self.texts) if not text]
        if not letters:
            return []
        sentence = ngettext(
            "Column %(letters)s has no name and is left out.",
            "Columns %(letters)s have no name and are left out.",
            len(letters),
        )
        return [sentence % {"letters": ", ".join([*letters[:MAX_LISTED], *(["…"] if letters[MAX_LISTED:] else [])])}]


def build_header(cells: Sequence[str]) -> TableHeader:
    """Raises UnreadableFile if no column has a name, or two have the same one."""
    start = count_report_columns(cells)
    texts = ["" if cell.isspace() else cell for cell in cells[start:]]
    named = sorted((text, number) for number, text in enumerate(texts, start) if text)
    if not named:
        raise UnreadableFile(_("The first row names no columns."))
    if all(QUOTED_PATTERN.fullmatch(text) for text, _number in named):
        raise UnreadableFile(_('The cells are between other quotation marks than ". Save the file with these.'))
    for (name, first), (other, second) in pairwise(named):
        if name == other:
            places = {"name": name, "first": name_column(first), "second": name_column(second)}
            raise UnreadableFile(_("The columns %(first)s and %(second)s have the same name “%(name)s”.") % places)
    return TableHeader(texts, start)


def count_report_columns(cells: Sequence[str]) -> int:
    return len(REPORT_COLUMNS) if tuple(cells[: len(REPORT_COLUMNS)]) == REPORT_COLUMNS else 0


def simplify_name(column: str) -> str:
    """Returns the name for comparison: folded and without punctuation."""
    return SIGNS_PATTERN.sub("", fold(column))


def name_column(number: int) -> str:
    """Returns the letters of the column with this number, from 0, as in spreadsheet programs."""
    letters = ""
    while number >= 0:
        letters = ascii_uppercase[number % 26] + letters
        number = number // 26 - 1
    return letters
