"""Reads workbooks of spreadsheet programs: XLSX, XLS and ODS.

A small file may need much memory or time, so the process that reads it has limits for both (`books.files.sandbox`).
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date, time, timedelta
from itertools import count
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook

from books.files.formats.headers import TableHeader, build_header
from books.files.formats.records import NumberText, Record, Table, UnreadableFile

OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
# Every archive of it has this file (OpenDocument 1.3, part 2, 3.1).
OPEN_DOCUMENT = "content.xml"
# The cells of a row, and its number.
Rows = Iterator[tuple[list[str], int]]


def read_workbook(stream: BinaryIO, encoding_name: str = "") -> Table:
    """Reads all sheets with the same columns as the first one. Raises UnreadableFile."""
    stream.seek(0)
    kind = name_kind(stream)
    stream.seek(0)
    with report_damage():
        workbook = CalamineWorkbook.from_filelike(stream)
    rows = iter_rows(workbook)
    header_row, _number = next(rows, ([], 1))
    header = build_header(header_row)
    records, description = iter_records(header, rows), describe_workbook(kind, len(workbook.sheet_names))
    return Table(header.columns, records, description, notes=header.list_notes())


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


def iter_rows(workbook: CalamineWorkbook) -> Rows:
    """Yields the rows of all sheets, numbered consecutively. Skips the header of further sheets."""
    header: list[str] | None = None
    numbers = count(1)
    for name in workbook.sheet_names:
        with report_damage():
            sheet = workbook.get_sheet_by_name(name)
        rows = zip(iter_sheet_rows(sheet), numbers, strict=False)
        cells, number = next(rows, ([], 0))
        names = strip_end(cells)
        if header is None and number:
            header = names
            yield names, number
        if names == header:
            yield from rows


def iter_sheet_rows(sheet: CalamineSheet) -> Iterator[list[str]]:
    """Yields the cells of each row, from the first column to the last cell. The first cells may be empty."""
    empty_cells = [""] * (sheet.start[1] if sheet.start else 0)
    for cells in sheet.iter_rows():
        yield [*empty_cells, *map(format_cell, cells)]


def strip_end(cells: list[str]) -> list[str]:
    """Returns the cells up to the last non-empty one."""
    return cells[: max((number for number, cell in enumerate(cells, 1) if cell), default=0)]


def iter_records(header: TableHeader, rows: Rows) -> Iterator[Record]:
    """Yields the non-empty rows, without the values of unnamed columns."""
    width = len(header.texts)
    for row, number in rows:
        cells = row[header.start :]
        if any(cells):
            texts = [*cells, *[""] * width][:width]
            values = dict(zip(header.texts, texts, strict=True))
            values.pop("", None)
            yield Record(number, values)


def format_cell(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return str(cell)
    return NumberText(int(cell) if float(cell).is_integer() else cell)
