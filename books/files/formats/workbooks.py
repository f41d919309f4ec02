"""Reads workbooks of spreadsheet programs: XLSX, XLS and ODS.

A small file may need much memory or time, so the process that reads it has limits for both (`books.files.reader`).
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date, time
from itertools import chain, count
from typing import Any, BinaryIO, NamedTuple
from zipfile import BadZipFile, ZipFile

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, SheetVisibleEnum

from books.book.fields import BOOK_FIELDS
from books.files.formats.headers import TableHeader, build_header, count_report_columns, simplify_name
from books.files.formats.records import READ_BYTES, NumberText, Record, Table, UnreadableFile

OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
# Every archive of it has this file (OpenDocument 1.3, part 2, 3.1).
OPEN_DOCUMENT = "content.xml"
# The parts with the cells, in which a row or column may be hidden (ECMA-376, part 1, 18.3.1; OpenDocument 1.3, 19.747).
CELL_PARTS = re.compile(r"content\.xml|xl/worksheets/[^/]+\.xml")
HIDDEN_CELLS = re.compile(
    rb"<(?:\w+:)?(?:row|col|table-row|table-column)(?=\s)[^<>]{0,500}?"
    rb"(?:\shidden=.(?:1|true)|:visibility=.(?:collapse|filter))"
)
# More of the parts is not searched for hidden cells: a small file may need much time.
MAX_SEARCHED_BYTES, MAX_ELEMENT_BYTES = 2**28, 1_000
# A sheet without these columns, where the first one has them, is no list of books.
USUAL_NAMES = {name for field in BOOK_FIELDS if field.is_required for name in field.columns}


class Sheet(NamedTuple):
    """A sheet with the cells of its first row, and the rows below with their numbers."""

    name: str
    cells: list[str]
    rows: Iterator[tuple[list[str], int]]


def read_workbook(stream: BinaryIO, encoding_name: str = "") -> Table:
    """Reads the visible sheets that have the columns of the first one, in any order. Raises UnreadableFile."""
    stream.seek(0)
    kind = name_kind(stream)
    stream.seek(0)
    with report_damage():
        workbook = CalamineWorkbook.from_filelike(stream)
    left_out: Counter[str] = Counter()
    sheets = iter_sheets(workbook, left_out)
    first = next(sheets, Sheet("", [], iter(())))
    header = build_header(first.cells)
    records = chain.from_iterable(read_sheet(header, sheet, left_out) for sheet in chain([first], sheets))
    notes = chain(header.list_notes(), iter_notes(stream, kind))
    description = describe_workbook(kind, len(workbook.sheet_names))
    return Table(header.columns, records, description, notes=notes, left_out=left_out)


def describe_workbook(kind: str, sheets: int) -> str:
    sentence = ngettext("%(kind)s, %(count)d sheet", "%(kind)s, %(count)d sheets", sheets)
    return sentence % {"kind": kind, "count": sheets} if sheets > 1 else kind


def name_kind(stream: BinaryIO) -> str:
    if stream.read(len(OLD_WORKBOOK)) == OLD_WORKBOOK:
        return "XLS"
    with suppress(BadZipFile):
        return "ODS" if OPEN_DOCUMENT in ZipFile(stream).namelist() else "XLSX"
    return "XLSX"


@contextmanager
def report_damage() -> Iterator[None]:
    """Raises UnreadableFile for the exceptions that calamine raises on invalid files."""
    try:
        yield
    except (CalamineError, OSError) as error:
        raise UnreadableFile(_("It is no workbook that can be read.")) from error


def iter_sheets(workbook: CalamineWorkbook, left_out: Counter[str]) -> Iterator[Sheet]:
    """Yields the visible sheets that are not empty. Their rows are numbered consecutively."""
    numbers = count(1)
    for metadata in workbook.sheets_metadata:
        with report_damage():
            rows = iter_sheet_rows(workbook.get_sheet_by_name(metadata.name))
        if metadata.visible != SheetVisibleEnum.Visible:
            left_out[_("hidden sheet “%(name)s”") % {"name": metadata.name}] += sum(map(any, rows))
            continue
        numbered_rows = zip(rows, numbers, strict=False)
        cells, number = next(numbered_rows, ([], 0))
        if number:
            yield Sheet(metadata.name, strip_end(cells), numbered_rows)


def iter_notes(stream: BinaryIO, kind: str) -> Iterator[str]:
    if kind == "XLS":
        yield _("Rows and columns that are hidden in an XLS file are read as the others.")
    elif has_hidden_cells(stream):
        yield _("Some rows or columns are hidden. They are read as the others.")


def has_hidden_cells(stream: BinaryIO) -> bool:
    """Whether a row or a column is hidden, often by a filter. Old workbooks (XLS) do not tell."""
    rest = MAX_SEARCHED_BYTES
    with suppress(BadZipFile), ZipFile(stream) as archive:
        for name in filter(CELL_PARTS.fullmatch, archive.namelist()):
            tail = b""
            with archive.open(name) as part:
                while rest > 0 and (chunk := part.read(READ_BYTES)):
                    if HIDDEN_CELLS.search(tail + chunk):
                        return True
                    tail, rest = chunk[-MAX_ELEMENT_BYTES:], rest - len(chunk)
    return False


def iter_sheet_rows(sheet: CalamineSheet) -> Iterator[list[str]]:
    """Yields the cells of each row, from the first column to the last cell. The first cells may be empty."""
    empty_cells = [""] * (sheet.start[1] if sheet.start else 0)
    for cells in sheet.iter_rows():
        yield [*empty_cells, *map(format_cell, cells)]


def strip_end(cells: list[str]) -> list[str]:
    """Returns the cells up to the last non-empty one."""
    return cells[: max((number for number, cell in enumerate(cells, 1) if cell), default=0)]


def rename_columns(header: TableHeader, cells: list[str]) -> list[str] | None:
    """Returns the names in the header for the columns of another sheet, "" for those that it does not have.

    Returns None if the sheet lacks one of the header's columns with a field of every book.
    """
    columns = {key: name for simplify in (simplify_name, str) for name in header.columns for key in [simplify(name)]}
    names = [columns.get(cell) or columns.get(simplify_name(cell), "") if cell.strip() else "" for cell in cells]
    needed = [name for name in header.columns if simplify_name(name) in USUAL_NAMES] or header.columns
    is_unique = all(names.count(name) == 1 for name in names if name)
    return names if is_unique and set(names).issuperset(needed) else None


def read_sheet(header: TableHeader, sheet: Sheet, left_out: Counter[str]) -> Iterator[Record]:
    """Yields the non-empty rows of a sheet with the header's columns, and counts what is left out."""
    start = count_report_columns(sheet.cells)
    columns = sheet.cells[start:]
    names = rename_columns(header, columns)
    if names is None:
        sentence = _("sheet “%(name)s” with other columns")
        left_out[sentence % {"name": sheet.name}] += 1 + sum(any(row) for row, _number in sheet.rows)
        return
    sentence, sheet_header = _("column “%(column)s” of the sheet “%(name)s”"), TableHeader(names, start)
    others = {
        number: sentence % {"column": column.strip(), "name": sheet.name}
        for number, column in enumerate(columns)
        if column.strip() and not names[number]
    }
    for row, number in sheet.rows:
        if any(cells := row[start:]):
            left_out.update(name for place, name in others.items() if any(cells[place : place + 1]))
            texts = [*cells, *[""] * len(names)]
            values = {name: text for name, text in zip(names, texts, strict=False) if name}
            yield Record(number, values, warnings=sheet_header.warn_cells(cells))


def format_cell(cell: Any) -> str:
    """Returns the text of a cell. What is not a text in the file may have been another text before."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return NumberText("true" if cell else "false")
    if isinstance(cell, date | time):
        return NumberText(cell.isoformat())
    if isinstance(cell, float | int):
        return NumberText(int(cell) if float(cell).is_integer() else cell)
    return NumberText(cell)
