"""Reads and writes books as CSV (RFC 4180), with commas, semicolons, tabs or vertical bars."""

import codecs
import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from typing import Any, BinaryIO

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from books.files.formats.encodings import Encoding, find_encoding, iter_lines, show_undecodable
from books.files.formats.headers import TableHeader, build_header
from books.files.formats.records import (
    EXPORTED_COLUMNS,
    REPORT_COLUMNS,
    ExportedBook,
    Pages,
    Record,
    Rejected,
    Table,
    UnreadableFile,
    format_count,
    get_values,
    name_field,
)
from library_site.db.integers import parse_integer

# Spreadsheet programs run formulas in cells, even in untrusted files (OWASP, CSV Injection). They skip a space before a
# formula, and some treat full-width characters as plain ones. A cell that begins with the escape character is escaped
# too, so that unescaping is unambiguous.
NEEDS_ESCAPE = re.compile(r"['\t\r\n]|\s*[=+\-@＝＋－＠]")
# A formula whose result is its own text: some programs write it so that spreadsheets do not convert an ISBN.
TEXT_FORMULA = re.compile('="((?:[^"]|"")*)"')
# Prefixes that do not belong to the text of a cell.
FIRST_SIGNS = frozenset("'=")
# How messages describe a file with each separator.
SEPARATORS = {
    ",": gettext_noop("CSV with commas, %(encoding)s"),
    ";": gettext_noop("CSV with semicolons, %(encoding)s"),
    "\t": gettext_noop("CSV with tabs, %(encoding)s"),
    "|": gettext_noop("CSV with vertical bars, %(encoding)s"),
}
# Excel writes and reads the separator in this way, on a line before the others.
SEPARATOR_LINE = re.compile(r'"?sep=(.*?)"?[\r\n]*', re.IGNORECASE)
# The beginnings of messages of Python's reader, and ours for them.
READER_ERRORS = {
    "unexpected end": gettext_noop('Line %(line)s: a quotation mark (") is opened and never closed.'),
    "field larger": gettext_noop("Line %(line)s: a cell has more than %(count)s characters."),
    "": gettext_noop('Line %(line)s: after a quotation mark (") a cell goes on.'),
}


def escape_formula(cell: str) -> str:
    return f"'{cell}" if NEEDS_ESCAPE.match(cell) else cell


# How values are written.
FORMATS_BY_TYPE: dict[type, Callable[[Any], str]] = {
    str: escape_formula,
    int: str,
    bool: {True: "true", False: "false"}.__getitem__,
}


def read_cell(cell: str) -> str:
    """Returns the text of a cell. An escaped text becomes the one that was passed to `escape_formula`."""
    if formula := TEXT_FORMULA.fullmatch(cell):
        return formula[1].replace('""', '"')
    return cell[1:] if cell.startswith("'") and NEEDS_ESCAPE.match(cell, 1) else cell


def read_csv(stream: BinaryIO, encoding_name: str = "") -> Table:
    """Returns the table without the first columns of a rejected-records file. Raises UnreadableFile."""
    encoding, warning = find_encoding(stream, encoding_name)
    separator, is_declared = find_separator(stream, encoding)
    rows = iter_numbered_rows(iter_lines(stream, encoding), separator)
    if is_declared:
        next(rows)
    _line, cells = next(rows, (1, []))
    header = build_header([show_undecodable(read_cell(cell)) for cell in cells])
    description = _(SEPARATORS[separator]) % {"encoding": encoding.description}
    records = (build_row_record(line, header, cells[header.start :]) for line, cells in rows if any(cells))
    return Table(header.columns, records, description, warning, header.list_notes(), separator)


def find_separator(stream: BinaryIO, encoding: Encoding) -> tuple[str, bool]:
    """Returns the separator, and whether the first line only declares it. Otherwise returns the most frequent one in
    this line.

    Raises UnreadableFile.
    """
    first_line = next(iter_lines(stream, encoding), "")
    if declaration := SEPARATOR_LINE.fullmatch(first_line):
        if declaration[1] not in SEPARATORS:
            sentence = _(
                "Its first line says that “%(separator)s” separates the cells. Save it with commas or semicolons."
            )
            raise UnreadableFile(sentence % {"separator": show_undecodable(declaration[1])})
        return declaration[1], True
    unquoted = "".join(first_line.split('"')[::2])
    return max(SEPARATORS, key=unquoted.count), False


def iter_numbered_rows(lines: Iterator[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the line number of each row, and its cells as they are in the file."""
    line = 1
    # Strict, because otherwise a quote that is never closed would turn the rest of the file into one cell.
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        sentence = next(ours for begin, ours in READER_ERRORS.items() if str(error).startswith(begin))
        limit = {"line": line, "count": format_count(csv.field_size_limit())}
        raise UnreadableFile(_(sentence) % limit) from error


def build_row_record(line: int, header: TableHeader, cells: list[str]) -> Record:
    """Columns without a name have the name ""."""
    names = header.texts
    if len(cells) == len(names):
        return Record(line, read_values(names, cells), warnings=header.warn_cells(cells))
    problem = ngettext(
        "It has %(count)d cell, and the first line %(columns)d.",
        "It has %(count)d cells, and the first line %(columns)d.",
        len(cells),
    )
    reason = name_field("row", problem % {"count": len(cells), "columns": len(names)})
    raw = [*map(read_cell, cells)]
    if len(cells) < len(names) or any(cells[len(names) :]):
        return Record(line, {}, raw, reason)
    # A separator too many may have moved a text from a full column to an empty one.
    return Record(line, read_values(names, cells), raw, warnings=(reason,))


def read_values(names: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    values = dict(zip(names, [read_cell(cell) if cell[:1] in FIRST_SIGNS else cell for cell in cells], strict=False))
    values.pop("", None)
    return values


def write_csv(pages: Pages) -> Iterator[bytes]:
    yield format_rows([EXPORTED_COLUMNS]).encode()
    for page in pages:
        yield format_rows(map(format_book, page)).encode()


def format_book(book: ExportedBook) -> list[str]:
    """Returns the cells for EXPORTED_COLUMNS."""
    cells = [FORMATS_BY_TYPE[type(value)](value) for value in get_values(book)]
    return [*cells, book.created_at.removesuffix("Z")]


def format_rows(rows: Iterable[Sequence[object]], separator: str = ",") -> str:
    # Lines end with CR LF (RFC 4180), so the writer quotes cells that contain CR or LF.
    lines = StringIO(newline="")
    csv.writer(lines, delimiter=separator).writerows(rows)
    return lines.getvalue()


def write_rejected_csv(table: Table, rejected: Rejected) -> Iterator[bytes]:
    """Writes the records of a table of any format, each after its line number and reason, so that users can correct and
    import them.
    """
    yield codecs.BOM_UTF8 + encode_row([*REPORT_COLUMNS, *map(escape_formula, table.columns)], table.separator)
    for record, reason in rejected:
        cells = record.raw or [record.values.get(column) for column in table.columns]
        yield encode_row([record.line, reason, *map(format_csv_value, cells)], table.separator)


def encode_row(cells: Sequence[object], separator: str) -> bytes:
    """Bytes that could not be decoded are written unchanged."""
    return format_rows([cells], separator).encode(errors="surrogateescape")


def format_csv_value(value: Any) -> str:
    """Returns the cell of a value, escaped against formulas. A negative number, such as a year, is not a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return FORMATS_BY_TYPE[bool](value)
    text = value if isinstance(value, str) else json.dumps(value)
    return text if parse_integer(text.strip()) is not None else escape_formula(text)
