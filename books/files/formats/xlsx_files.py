"""Reads and writes books as workbooks of spreadsheet programs (ECMA-376), with little memory."""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import Any, BinaryIO
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell

from books.files.formats.headers import TableHeader, build_header
from books.files.formats.records import (
    EXPORTED_COLUMNS,
    REPORT_COLUMNS,
    ExportedBook,
    FailedFormula,
    NumberText,
    Pages,
    Record,
    Table,
    UnreadableFile,
    get_values,
)
from books.files.formats.xlsx_parts import OpenWorkbook, Row

# A sheet has 1,048,576 rows, the first of which names the columns.
BOOKS_PER_SHEET = 1_048_575
# Cells hold floating-point numbers, which are exact up to here.
MAX_EXACT_NUMBER = 2**53
NO_ROW = Row(0, {})
# What a cell shows whose formula has no result.
NO_RESULT = "#N/A"
# Other texts would not be the same after reading: XML has no control characters, and reads CR as LF. `_x0041_` is an
# escape itself, and `_x0041` before an escape becomes one.
UNSAFE_CHARACTERS = re.compile("[{0}]|_(?=x[0-9A-Fa-f]{{4}}[_{0}])".format("\x00-\x08\x0b-\x1f\ufffe\uffff"))


def read_xlsx(stream: BinaryIO, encoding_name: str = "") -> Table:
    """Reads all sheets that have the columns of the first one. Raises UnreadableFile."""
    stream.seek(0)
    with report_bad_workbook():
        workbook = OpenWorkbook(stream)
        rows = iter_rows(workbook)
        first = next(rows, None)
    header = build_header(list_texts(first.cells) if first and first.number == 1 else [])
    records, description = iter_records(header, rows), describe_workbook(len(workbook.sheets))
    return Table(header.columns, records, description, layout=header.texts, notes=header.list_notes())


def list_texts(cells: Mapping[int, Any]) -> list[str]:
    """Returns the texts up to the last one; "" for a cell that is empty."""
    filled = [number for number, cell in cells.items() if cell not in (None, "")]
    return [format_cell(cells.get(number)) for number in range(1, max(filled, default=0) + 1)]


def describe_workbook(sheets: int) -> str:
    if sheets == 1:
        return "XLSX"
    return ngettext("XLSX, %(count)d sheet", "XLSX, %(count)d sheets", sheets) % {"count": sheets}


@contextmanager
def report_bad_workbook() -> Iterator[None]:
    """Raises UnreadableFile instead of what zipfile, the parser and conversions raise for bad input."""
    try:
        yield
    except (BadZipFile, KeyError, ValueError, IndexError) as error:
        raise UnreadableFile(
            _("It is no workbook that can be read: %(error)s.") % {"error": type(error).__name__}
        ) from error
    except (ExpatError, LookupError, zlib.error, OSError, EOFError, RuntimeError, ArithmeticError) as error:
        raise UnreadableFile(_("The workbook is damaged: %(error)s.") % {"error": type(error).__name__}) from error


def iter_rows(workbook: OpenWorkbook) -> Iterator[Row]:
    """Yields the rows of all sheets, numbered on. The first row of further sheets is left out."""
    header: list[str] | None = None
    offset = 0
    for sheet in workbook.sheets:
        with report_bad_workbook():
            rows = workbook.iter_rows(sheet)
            number, cells = first = next(rows, NO_ROW)
            if header is None and first is not NO_ROW:
                header = list_texts(cells)
                yield first
            elif header != (list_texts(cells) if number == 1 else None):
                rows = iter(())
            for number, cells in rows:
                yield Row(offset + number, cells)
        offset += number


def iter_records(header: TableHeader, rows: Iterable[Row]) -> Iterator[Record]:
    """Yields the rows that are not empty. The values have no column without a name."""
    places = range(header.start + 1, header.start + 1 + len(header.texts))
    for number, cells in rows:
        if any(column > header.start and is_filled(cell) for column, cell in cells.items()):
            texts = [format_cell(cells.get(place)) for place in places]
            values = dict(zip(header.texts, texts, strict=True))
            values.pop("", None)
            yield Record(number, values, texts)


def is_filled(cell: Any) -> bool:
    return cell not in (None, "") or isinstance(cell, FailedFormula)


def format_cell(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return str(cell)
    is_whole = isinstance(cell, float) and cell.is_integer()
    return NumberText(int(cell) if is_whole else cell)


def write_xlsx(pages: Pages, stream: BinaryIO) -> None:
    workbook = Workbook(write_only=True)
    with discard_on_failure(workbook):
        sheet, count = add_sheet(workbook, EXPORTED_COLUMNS), 0
        for page in pages:
            for book in page:
                if count == BOOKS_PER_SHEET:
                    sheet, count = add_sheet(workbook, EXPORTED_COLUMNS), 0
                sheet.append(format_book(sheet, book))
                count += 1
    workbook.save(stream)


@contextmanager
def discard_on_failure(workbook: Workbook) -> Iterator[None]:
    """Deletes the temporary files of a workbook that is given up: openpyxl does so when it is saved, or at exit."""
    try:
        yield
    except BaseException:
        sheets: list[Any] = workbook.worksheets
        for sheet in sheets:
            sheet.close()
            sheet._writer.cleanup()
        raise


def add_sheet(workbook: Workbook, columns: Sequence[str]) -> Any:
    sheet = workbook.create_sheet()
    sheet.append([make_text_cell(sheet, name) for name in columns])
    return sheet


def format_book(sheet: Any, book: ExportedBook) -> list[Any]:
    """Returns the cells of EXPORTED_COLUMNS."""
    return [*(make_cell(sheet, value) for value in get_values(book)), book.created_at]


def make_cell(sheet: Any, value: str | int | bool) -> Any:
    if isinstance(value, str):
        return make_text_cell(sheet, value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if abs(value) <= MAX_EXACT_NUMBER else str(value)


def make_text_cell(sheet: Any, text: str) -> Any:
    """Returns a cell that no program takes for a formula, an error or a number."""
    cell: Any = WriteOnlyCell(sheet)
    cell.value = UNSAFE_CHARACTERS.sub(lambda match: f"_x{ord(match[0]):04X}_", text)
    cell.data_type = "s"
    return cell


class XLSXRejectedFile:
    """The refused rows behind the line and the reason. The file is complete after `close`."""

    def __init__(self, stream: BinaryIO, table: Table) -> None:
        self.stream = stream
        self.workbook = Workbook(write_only=True)
        self.sheet = add_sheet(self.workbook, [*REPORT_COLUMNS, *table.layout])

    def add(self, record: Record, reason: str) -> None:
        cells = [restore_cell(self.sheet, cell) for cell in record.raw]
        self.sheet.append([record.line, make_text_cell(self.sheet, reason), *cells])

    def close(self) -> None:
        self.workbook.save(self.stream)


def restore_cell(sheet: Any, cell: str) -> Any:
    """Returns the number, the text or the error that a cell had. A formula does not come back: it would be run."""
    if isinstance(cell, NumberText):
        return float(cell)
    restored = make_text_cell(sheet, cell)
    if isinstance(cell, FailedFormula):
        restored.value, restored.data_type = cell or NO_RESULT, "e"
    return restored
