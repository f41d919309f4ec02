"""Parses cells as other programs write them: dates for years, several ISBNs, numbers for texts."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from stdnum import issn

from books.book import isbn as isbns
from books.book.isbn import normalize_isbn
from books.book.texts import clean_white_space
from books.files.columns.qualifiers import choose_isbn
from books.files.columns.tables import FIELDS_BY_PLACE, SEVERAL_VALUES_COLUMNS
from books.files.columns.texts import DITTO, is_nothing, mend_text, strip_stop
from books.files.formats.headers import simplify_name
from books.files.formats.records import (
    LIST_TEXT,
    SURE_SEPARATORS,
    SURE_YEAR,
    NumberText,
    name_field,
    split_values,
)
from library_site.db.integers import BIGINT_MAX, parse_integer

# The value of a cell, and the warning about it.
Reading = tuple[Any, str]
# Longer cells are not dates.
MAX_DATE_LENGTH = 64

DAY, MONTH = "[0-9]{1,2}", "(?:0?[0-9]|1[0-2])"
SHORT_MONTH = "(?:jan|feb|mar|mär|mrz|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)"
MONTH_NAME = rf"{SHORT_MONTH}[^\W\d_]*\.?"
TIME = r"(?:[T ][0-9]{1,2}:[0-9:.,]+ ?(?:[AP]M)?(?:Z|UTC|[+-][0-9]{2}:?[0-9]{2})?)?"
DATE_PATTERNS = [
    SURE_YEAR,
    # 1999.0, as programs without integers write it.
    re.compile(r"(?P<year>-?[0-9]+)[.,]0+"),
    # 1969-03-01T00:00:00+00:00 (ISO 8601).
    re.compile(rf"(?P<year>[0-9]{{4}})[-/.]{MONTH}(?:[-/.]{DAY}{TIME})?", re.IGNORECASE),
    re.compile(rf"(?:{DAY}[-/.] ?)?{DAY}[-/.] ?(?P<year>[0-9]{{4}}){TIME}", re.IGNORECASE),
    # March 1, 1969, or 1. März 1969.
    re.compile(rf"(?:{DAY}\.?[ -])?{MONTH_NAME}[ -](?:{DAY},? )?(?P<year>[0-9]{{4}})", re.IGNORECASE),
    re.compile(rf"(?P<year>[0-9]{{4}}),? {MONTH_NAME}(?: {DAY})?", re.IGNORECASE),
]
# Calibre writes this date, in any time zone, for a book with an unknown date.
UNKNOWN_DATE = re.compile("(?:0101-01-01|0100-12-31)(?![0-9]).*", re.DOTALL)
# Spreadsheets count days from 1899-12-30: they show a number such as 2005 as a date of this year.
YEAR_OF_SERIAL_NUMBERS = 1905
# A number that a spreadsheet did not make of another text: its text has no zero, exponent, date or fraction to lose.
SURE_NUMBER = re.compile("[1-9][0-9]{2,3}")
# What a spreadsheet makes of `1-2` or `1/2005`, of dates, times, truths and long numbers, and of what is too wide.
SPREADSHEET_TEXT = re.compile(
    rf"[0-9]{{1,2}}(?:-|\. ?){SHORT_MONTH}|{SHORT_MONTH}[- ][0-9]{{2}}|[0-9](?:[.,][0-9]+)?E\+[0-9]{{2,3}}|##+"
    r"|[0-9]{1,2}([/.-])[0-9]{1,2}\1(?:[0-9]{2}){1,2}|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9:.]+)?"
    r"|[0-9]{1,2}:[0-9]{2}:[0-9]{2}|(?-i:TRUE|FALSE|WAHR|FALSCH|VRAI|FAUX|VERDADERO|FALSO)",
    re.IGNORECASE,
)
NUMBERS, DATE_NUMBERS = re.compile("[0-9]+"), 3
FOUR_DIGITS = re.compile("(?<![0-9])[0-9]{4}(?![0-9])")
# Beside the year of another calendar, catalogues write that of ours: `1402 [2023]`, `2567 (2024)`.
USUAL_YEAR = re.compile("1[5-9][0-9]{2}|20[0-9]{2}")

ISBN_10_LENGTH, ISBN_13_LENGTH = 10, 13
# A shorter number is not an ISBN that lost leading zeros: a group and a publisher begin with at most four zeros.
MIN_ISBN_DIGITS = 6
# In CSV a number is a text like others.
DIGITS = re.compile("[0-9]{6,9}")
# How programs write a long number: with an empty fraction, or with an exponent.
WHOLE_NUMBER = re.compile(r"([0-9]{9,13})[.,]0+")
SCIENTIFIC_NUMBER = re.compile(r"([0-9])[.,]([0-9]+)E\+([0-9]+)", re.IGNORECASE)
WRAPPED_TEXT = re.compile(r'\s*(?:\[(.*)\]|="(.*)")\s*', re.DOTALL)
ISSN_PATTERN = re.compile("[0-9]{4}-?[0-9]{3}[0-9X]", re.IGNORECASE)
# The text around an ISSN: `ISSN: 0317-8471 (Print)`.
ISSN_LABEL = re.compile(r"e?-?ISSN:?|\([^)]*\)", re.IGNORECASE)
# What introduces the next part of a description (ISBD, A.3), as Koha and Alma leave it at the end of a cell.
ISBD_END = re.compile(r" [/:;=]$|(?<=.),$")
# Shelves that every Goodreads user has.
READING_STATES = frozenset({"read", "to-read", "currently-reading"})


class UnknownDate(str):
    """A cell that means "unknown date" in its program. The field stays empty."""

    __slots__ = ()


class CellSource(NamedTuple):
    """A column, how its cells are parsed, and its name for users."""

    column: str
    read: Callable[[Any], Reading]
    heading: str


def list_sources(
    mapping: Mapping[str, str], *, is_exact: bool, headings: Mapping[str, str] = {}
) -> dict[str, list[CellSource]]:
    """Returns the columns of each field, most important first. Texts of an exact file are not changed.

    `headings` maps columns to the names that users see; by default a column's own name.
    """
    sources: dict[str, list[CellSource]] = {}
    for place in filter(mapping.__contains__, FIELDS_BY_PLACE):
        field, column = FIELDS_BY_PLACE[place], mapping[place]
        reader = find_reader(field, column, is_exact=is_exact, is_table=not headings)
        sources.setdefault(field, []).append(CellSource(column, reader, headings.get(column, column)))
    return sources


def find_reader(field: str, column: str, *, is_exact: bool, is_table: bool = True) -> Callable[[Any], Reading]:
    """Returns how the cells of a column are read. Formats without columns have their own rules for texts."""
    if is_exact:
        return EXACT_READERS.get(field, read_any)
    if not is_table and field in EXACT_TEXTS:
        return read_other_text
    if field == "genre" and simplify_name(column) in SEVERAL_VALUES_COLUMNS:
        return partial(read_genre, is_list=True)
    return READERS.get(field, read_any)


def read_cells(
    values: Mapping[str, Any], sources: Mapping[str, Sequence[CellSource]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the values of a record and the warnings, both by field. A warning begins with the name of its column."""
    cells: dict[str, Any] = {}
    warnings: dict[str, str] = {}
    for field, columns in sources.items():
        heading, (cells[field], warning) = read_field(field, values, columns)
        if warning:
            warnings[field] = name_field(heading, warning)
    return cells, warnings


def read_field(field: str, values: Mapping[str, Any], sources: Sequence[CellSource]) -> tuple[str, Reading]:
    """Returns the heading and the cell of the column to use: the first that suffices, else the first non-empty one."""
    readings: list[tuple[str, Reading]] = []
    for number, (column, read, heading) in enumerate(sources, 1):
        value, warning = read(values.get(column))
        if suffices(field, value, warning):
            if field == "isbn" and len(sources) > 1:
                others = ((heading, read(values.get(column))) for column, read, heading in sources[number:])
                warning = warn_other_isbn(value, [*readings, *others])
            return heading, (value, warning)
        readings.append((heading, (value, warning)))
    return next((reading for reading in readings if not is_blank(reading[1][0])), readings[0])


def warn_other_isbn(text: str, readings: Iterable[tuple[str, Reading]]) -> str:
    """Returns the warning that one of these columns has the ISBN of another book."""
    for heading, (isbn, _warning) in readings:
        if isinstance(isbn, str) and normalize_isbn(isbn) not in (None, normalize_isbn(text)):
            return _("The column “%(column)s” has another one, %(isbn)s.") % {"column": heading, "isbn": isbn}
    return ""


def suffices(field: str, value: Any, warning: str) -> bool:
    if field == "isbn":
        return not warning and isinstance(value, str) and normalize_isbn(value) is not None
    return not is_blank(value) and not (field == "year" and isinstance(value, str))


def is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def has_no_isbn(cell: Any) -> bool:
    """Whether the cell is empty or contains only ISSNs, which journals and articles have in the same fields."""
    return is_blank(cell) or (isinstance(cell, str) and has_only_issns(cell))


def has_only_issns(text: str) -> bool:
    pieces = isbns.SEPARATORS.split(ISSN_LABEL.sub("", text).strip()) if len(text) <= isbns.MAX_LIST_TEXT else []
    return bool(pieces) and all(ISSN_PATTERN.fullmatch(piece) and issn.is_valid(piece) for piece in pieces)


def read_any(cell: Any) -> Reading:
    return cell, ""


def read_text(cell: Any) -> Reading:
    return (cell, "") if type(cell) is str else (read_json_number(cell), warn_number(cell))


def read_mended_text(cell: Any) -> Reading:
    """Reads a text of a program with another idea of nothing."""
    if type(cell) is not str:
        return read_text(cell)
    text, warning = ("", "") if is_nothing(cell) else read_title(cell)
    if DITTO.fullmatch(text):
        warning = _("It may mean that there is none.")
    return text, _("It has several lines, which may be several values.") if "\n" in cell.strip() else warning


def read_title(cell: Any) -> Reading:
    """Reads a text of a program with another idea of white space or of letters. It may be the title “None”."""
    if type(cell) is not str:
        return read_text(cell)
    text, warning = mend_text(cell)
    text = ISBD_END.sub("", clean_white_space(text))
    return text, warn_number(NumberText(text)) if SPREADSHEET_TEXT.fullmatch(text) else warning


def read_other_text(cell: Any) -> Reading:
    text, warning = read_text(cell)
    return text, warning or (mend_text(text)[1] if isinstance(text, str) else "")


def warn_number(cell: Any) -> str:
    """Returns the warning that a spreadsheet has made something else of a text."""
    if not isinstance(cell, NumberText) or SURE_NUMBER.fullmatch(cell):
        return ""
    return _("A spreadsheet has made it “%(text)s”, which may have been another text.") % {"text": cell}


def read_json_number(cell: Any) -> Any:
    """Returns a number as text: in JSON a title such as 1984 may be a number. Other values are not changed."""
    is_number = type(cell) in (int, float) and abs(cell) <= BIGINT_MAX and cell == int(cell)
    return NumberText(int(cell)) if is_number else cell


def read_genre(cell: Any, *, is_list: bool = False) -> Reading:
    """Reads the first of several genres. A comma may belong to one, unless the column is a list of keywords."""
    if type(cell) is not str or is_nothing(cell):
        return read_mended_text(cell)
    # An entity ends with a semicolon, too.
    text, warning = mend_text(cell)
    if is_list or any(separator in text for separator in SURE_SEPARATORS) or LIST_TEXT.fullmatch(text):
        value = next((value for value in split_values(text) if value not in READING_STATES), "")
        return strip_stop(clean_white_space(value)), warning
    return read_mended_text(cell)


def read_year(cell: Any) -> Reading:
    text = read_json_number(cell)
    if not isinstance(text, str):
        return text, ""
    text = text.strip()
    if (year := parse_integer(text)) is not None:
        return year, ""
    if not text or is_nothing(text):
        return "", ""
    return (UnknownDate(), "") if UNKNOWN_DATE.fullmatch(text) else read_date(text)


def read_date(text: str) -> Reading:
    """Returns the year of a date. For other texts it returns the first usual number of four digits, with a warning."""
    if len(text) <= MAX_DATE_LENGTH:
        for pattern in DATE_PATTERNS:
            if match := pattern.fullmatch(text):
                return int(match["year"]), warn_date(text, int(match["year"]))
    if years := FOUR_DIGITS.findall(text):
        year = next(filter(USUAL_YEAR.fullmatch, years), years[0])
        warning = _("The text is “%(text)s”, which may mean %(year)s.")
        return int(year), warning % {"text": text[:MAX_DATE_LENGTH], "year": year}
    return text, ""


def warn_date(text: str, year: int) -> str:
    if year != YEAR_OF_SERIAL_NUMBERS or len(NUMBERS.findall(text)) < DATE_NUMBERS:
        return ""
    return _("A spreadsheet makes such a date of a year like 2005: “%(text)s”.") % {"text": text}


def read_exact_isbn(cell: Any) -> Reading:
    text = read_json_number(cell)
    return repair_isbn(text) if isinstance(text, str) else (text, "")


def read_isbn(cell: Any) -> Reading:
    text = NumberText(cell) if type(cell) is str and DIGITS.fullmatch(cell) else read_json_number(cell)
    if type(text) is str and normalize_isbn(text) is not None:
        return text.strip(), ""
    if not isinstance(text, str) or is_nothing(text):
        return "" if isinstance(text, str) else text, ""
    return repair_isbn(text if isinstance(text, NumberText) else extract_isbn(text))


def extract_isbn(text: str) -> str:
    """Returns the ISBN of this edition in the text. If there is none, it returns the text without decoration."""
    if number := find_whole_number(text.strip()):
        return NumberText(number)
    if isbn := isbns.find_isbn(text):
        return choose_isbn(isbns.LIST_SEPARATORS.split(text)) or isbn
    wrapped = WRAPPED_TEXT.fullmatch(text) if len(text) <= isbns.MAX_LIST_TEXT else None
    return (wrapped[1] or wrapped[2] or "") if wrapped else text


def find_whole_number(text: str) -> str:
    """Returns the digits of a number that lost none, else ""."""
    if match := WHOLE_NUMBER.fullmatch(text):
        return match[1]
    match = SCIENTIFIC_NUMBER.fullmatch(text)
    return match[1] + match[2] if match and len(match[2]) == int(match[3]) else ""


def repair_isbn(text: str) -> tuple[str, str]:
    """Returns the isbn and the warning about it: a spreadsheet turns ISBNs into numbers."""
    if SCIENTIFIC_NUMBER.fullmatch(text.strip()):
        return text, _("A spreadsheet has rounded the number.")
    if not isinstance(text, NumberText):
        return text, ""
    whole_text = text.zfill(ISBN_10_LENGTH)
    if MIN_ISBN_DIGITS <= len(text) < ISBN_10_LENGTH and normalize_isbn(whole_text):
        warning = _("A spreadsheet has made it %(number)s, which may be %(isbn)s.")
        return whole_text, warning % {"number": text, "isbn": whole_text}
    if len(text) == ISBN_13_LENGTH and not normalize_isbn(text):
        return str(text), _("It is no ISBN. A spreadsheet may have rounded the number.")
    return str(text), ""


EXACT_TEXTS = {"title": read_text, "author": read_text, "genre": read_text}
EXACT_READERS = {**EXACT_TEXTS, "isbn": read_exact_isbn, "year": read_year}
READERS = {
    "title": read_title,
    "author": read_mended_text,
    "genre": read_genre,
    "isbn": read_isbn,
    "year": read_year,
}
