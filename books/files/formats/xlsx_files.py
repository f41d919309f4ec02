"""Writes books as XLSX workbooks (ECMA-376) with little memory."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.utils import get_column_letter

from books.book.fields import MAX_LENGTHS
from books.files.formats.records import EXPORTED_COLUMNS, ExportedBook, Pages, get_values

# In characters.
WIDTHS, OTHER_WIDTH = {"title": 50, "author": 30, "isbn": 20, "genre": 20, "created_at": 28}, 10
# The format of cells with texts (ECMA-376, part 1, 18.8.30).
TEXT_FORMAT = "@"
# A sheet has 1,048,576 rows, the first of which is the header.
BOOKS_PER_SHEET = 1_048_575
# Cells contain floating-point numbers, which are exact up to this number.
MAX_EXACT_NUMBER = 2**53
# Other texts would change: XML has no control characters, and reads CR as LF. `_x0041_` is an escape itself, and
# `_x0041` before an escape becomes one.
UNSAFE_CHARACTERS = re.compile("[{0}]|_(?=x[0-9A-Fa-f]{{4}}[_{0}])".format("\x00-\x08\x0b-\x1f\ufffe\uffff"))


def write_xlsx(pages: Pages, stream: BinaryIO) -> None:
    workbook = Workbook(write_only=True)
    with discard_on_failure(workbook):
        sheet, count = add_sheet(workbook), 0
        for page in pages:
            for book in page:
                if count == BOOKS_PER_SHEET:
                    sheet, count = add_sheet(workbook), 0
                sheet.append(format_book(sheet, book))
                count += 1
    workbook.save(stream)


@contextmanager
def discard_on_failure(workbook: Workbook) -> Iterator[None]:
    """Deletes the temporary files of an unfinished workbook. Otherwise openpyxl deletes them only when it saves or at
    exit.
    """
    try:
        yield
    except BaseException:
        sheets: list[Any] = workbook.worksheets
        for sheet in sheets:
            sheet.close()
            sheet._writer.cleanup()
        raise


def add_sheet(workbook: Workbook) -> Any:
    sheet = workbook.create_sheet()
    sheet.freeze_panes = "A2"
    for number, name in enumerate(EXPORTED_COLUMNS, 1):
        dimension = sheet.column_dimensions[get_column_letter(number)]
        dimension.width = WIDTHS.get(name, OTHER_WIDTH)
        if name in MAX_LENGTHS:
            # Of what a user types, too: an ISBN keeps its zeros.
            dimension.number_format = TEXT_FORMAT
    sheet.append([build_text_cell(sheet, name) for name in EXPORTED_COLUMNS])
    return sheet


def format_book(sheet: Any, book: ExportedBook) -> list[Any]:
    """Returns the cells for EXPORTED_COLUMNS."""
    return [*(build_cell(sheet, value) for value in get_values(book)), book.created_at]


def build_cell(sheet: Any, value: str | int | bool) -> Any:
    if isinstance(value, str):
        return build_text_cell(sheet, value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if abs(value) <= MAX_EXACT_NUMBER else str(value)


def build_text_cell(sheet: Any, text: str) -> Any:
    """Returns a cell that no program reads as a formula, an error or a number."""
    cell: Any = WriteOnlyCell(sheet)
    cell.value = UNSAFE_CHARACTERS.sub(lambda match: f"_x{ord(match[0]):04X}_", text)
    cell.data_type = "s"
    cell.number_format = TEXT_FORMAT
    return cell
