"""Reads and writes books as workbooks of spreadsheet programs (ECMA-376), with little memory."""

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from openpyxl import Workbook, load_workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.utils.exceptions import InvalidFileException

from books.exchange.formats.records import (
    REPORT_COLUMNS,
    ExportedBook,
    NumberText,
    Pages,
    Record,
    Table,
    UnreadableFile,
)

EXPORTED_COLUMNS = ("id", "title", "author", "year", "isbn", "genre", "available", "created_at")
# A sheet has 1,048,576 rows, the first of which names the columns.
BOOKS_PER_SHEET = 1_048_575
# A small file can unpack to a huge one. The texts that cells share are all in memory at once.
MAX_UNPACKED_BYTES = 2 * 2**30
MAX_SHARED_BYTES = 64 * 2**20
SHEET_PARTS = "xl/worksheets/"
# Cells hold floating-point numbers, which are exact up to here.
MAX_EXACT_NUMBER = 2**53
# Other texts would not be the same after reading: XML has no control characters, and reads CR as LF. `_x0041_` is an
# escape itself (ECMA-376 Part 1, 22.9.2.19).
UNSAFE_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
ESCAPE_PATTERN = re.compile("_x([0-9A-Fa-f]{4})_")


def read_xlsx(stream: BinaryIO, encoding_name: str = "") -> Table:
    """Reads all sheets that have the columns of the first one. Raises UnreadableFile."""
    stream.seek(0)
    with report_bad_workbook():
        require_bounded_size(stream)
        # Numbers and texts, not the formulas that compute them.
        workbook = load_workbook(stream, read_only=True, data_only=True, keep_links=False)
        rows = iter_rows(workbook.worksheets)
        _line, columns = next(rows, (1, []))
    texts = [format_cell(cell) for cell in strip_empty_cells(columns)]
    start = len(REPORT_COLUMNS) if tuple(texts[: len(REPORT_COLUMNS)]) == REPORT_COLUMNS else 0
    names = texts[start:]
    if not names or "" in names or len(names) != len(set(names)):
        raise UnreadableFile(_("The first row has a column without a name, or one twice."))
    return Table(names, iter_records(names, rows, start), describe_workbook(len(workbook.worksheets)))


def describe_workbook(sheets: int) -> str:
    if sheets == 1:
        return "XLSX"
    return ngettext("XLSX, %(count)d sheet", "XLSX, %(count)d sheets", sheets) % {"count": sheets}


@contextmanager
def report_bad_workbook() -> Iterator[None]:
    """Raises UnreadableFile instead of what openpyxl and its parsers raise for bad input."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except UnreadableFile:
        raise
    except (BadZipFile, InvalidFileException, KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise UnreadableFile(
            _("It is no workbook that can be read: %(error)s.") % {"error": type(error).__name__}
        ) from error
    except (SyntaxError, OSError, EOFError, RuntimeError, NotImplementedError, ArithmeticError) as error:
        raise UnreadableFile(_("The workbook is damaged: %(error)s.") % {"error": type(error).__name__}) from error


def require_bounded_size(stream: BinaryIO) -> None:
    parts = ZipFile(stream).infolist()
    unpacked_bytes = sum(part.file_size for part in parts)
    shared_bytes = sum(part.file_size for part in parts if not part.filename.startswith(SHEET_PARTS))
    if unpacked_bytes > MAX_UNPACKED_BYTES or shared_bytes > MAX_SHARED_BYTES:
        raise UnreadableFile(_("The workbook is too large when it is unpacked."))


def iter_rows(sheets: Sequence[Any]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yields the number and the cells of each row. The first row of further sheets is left out."""
    columns: tuple[Any, ...] = ()
    offset = 0
    for sheet in sheets:
        # Some programs write a wrong size into the sheet, after which openpyxl would stop.
        sheet.reset_dimensions()
        number = 0
        with report_bad_workbook():
            for number, cells in enumerate(sheet.iter_rows(values_only=True), 1):
                if number == 1 and offset:
                    if strip_empty_cells(cells) != columns:
                        break
                    continue
                if not columns:
                    columns = strip_empty_cells(cells)
                yield offset + number, cells
        offset += number


def iter_records(columns: Sequence[str], rows: Iterable[tuple[int, Sequence[Any]]], start: int) -> Iterator[Record]:
    for number, cells in rows:
        texts = [format_cell(cell) for cell in cells[start:]]
        padded = texts[: len(columns)] + [""] * (len(columns) - len(texts))
        if any(texts):
            yield Record(number, dict(zip(columns, padded, strict=True)), padded)


def strip_empty_cells(cells: Sequence[Any]) -> tuple[Any, ...]:
    """Returns the cells without empty ones at the end."""
    length = max((place for place, cell in enumerate(cells, 1) if cell not in (None, "")), default=0)
    return tuple(cells[:length])


def format_cell(cell: Any) -> str:
    if isinstance(cell, str):
        return ESCAPE_PATTERN.sub(lambda match: chr(int(match[1], 16)), cell)
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
    sheet, count = add_sheet(workbook, EXPORTED_COLUMNS), 0
    for page in pages:
        for book in page:
            if count == BOOKS_PER_SHEET:
                sheet, count = add_sheet(workbook, EXPORTED_COLUMNS), 0
            sheet.append(format_book(sheet, book))
            count += 1
    workbook.save(stream)


def add_sheet(workbook: Workbook, columns: Sequence[str]) -> Any:
    sheet = workbook.create_sheet()
    sheet.append([make_text_cell(sheet, name) for name in columns])
    return sheet


def format_book(sheet: Any, book: ExportedBook) -> list[Any]:
    return [
        book.id if book.id <= MAX_EXACT_NUMBER else str(book.id),
        make_text_cell(sheet, book.title),
        make_text_cell(sheet, book.author),
        book.year,
        make_text_cell(sheet, book.isbn),
        make_text_cell(sheet, book.genre),
        "true" if book.available else "false",
        book.created_at,
    ]


def make_text_cell(sheet: Any, text: str) -> Any:
    """Returns a cell that no program takes for a formula, an error or a number."""
    cell: Any = WriteOnlyCell(sheet)
    cell.value = UNSAFE_CHARACTERS.sub(lambda match: f"_x{ord(match[0]):04X}_", text)
    cell.data_type = "s"
    return cell


class XLSXRefusedFile:
    """The refused rows behind the line and the reason. The file is complete after `close`."""

    def __init__(self, stream: BinaryIO, table: Table) -> None:
        self.stream = stream
        self.workbook = Workbook(write_only=True)
        self.sheet = add_sheet(self.workbook, [*REPORT_COLUMNS, *table.columns])

    def add(self, record: Record, reason: str) -> None:
        cells = [cell if isinstance(cell, NumberText) else make_text_cell(self.sheet, cell) for cell in record.raw]
        self.sheet.append([record.line, make_text_cell(self.sheet, reason), *map(self.restore_number, cells)])

    def restore_number(self, cell: Any) -> Any:
        return float(cell) if isinstance(cell, NumberText) else cell

    def close(self) -> None:
        self.workbook.save(self.stream)
