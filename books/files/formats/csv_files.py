"""Reads and writes books as CSV (RFC 4180), with commas, semicolons or tabs."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from typing import Any, BinaryIO, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from books.files.csv_cells import escape_formula, unescape_formula
from books.files.formats.encodings import Encoding, find_encoding, iter_lines, show_undecodable
from books.files.formats.records import (
    EXPORTED_COLUMNS,
    MAX_RECORD_BYTES,
    REPORT_COLUMNS,
    ExportedBook,
    Pages,
    Record,
    Table,
    UnreadableFile,
    build_endless_refusal,
    get_values,
    name_member,
)
from library_site.db.integers import parse_integer

# How a file with each separator is read.
SEPARATORS = {
    ",": gettext_noop("CSV with commas, %(encoding)s"),
    ";": gettext_noop("CSV with semicolons, %(encoding)s"),
    "\t": gettext_noop("CSV with tabs, %(encoding)s"),
}
# What Python's reader says.
READER_ERRORS = (
    gettext_noop("unexpected end of data"),
    gettext_noop("',' expected after '\"'"),
    gettext_noop("';' expected after '\"'"),
    gettext_noop("'\t' expected after '\"'"),
    gettext_noop("field larger than field limit (131072)"),
)

# How a value is written.
FORMATS_BY_TYPE: dict[type, Callable[[Any], str]] = {
    str: escape_formula,
    int: str,
    bool: {True: "true", False: "false"}.__getitem__,
}


class Layout(NamedTuple):
    """`header` has the columns as they are in the file, also with bytes that are not in the encoding."""

    encoding: Encoding
    separator: str
    header: Sequence[str]


def read_csv(stream: BinaryIO, encoding_name: str = "") -> Table:
    """Returns the table without the columns that a file of refused rows has. Raises UnreadableFile.

    The cells are without the escapes of `csv_cells`.
    """
    found = find_encoding(stream, encoding_name)
    separator = find_separator(stream, found.encoding)
    lines = RowLines(iter_lines(stream, found.encoding))
    # Strict: otherwise a quote that is never closed would make the rest of the file one cell.
    rows = iter_numbered_rows(csv.reader(lines, delimiter=separator, strict=True), lines)
    _line, columns = next(rows, (1, []))
    start = len(REPORT_COLUMNS) if tuple(columns[: len(REPORT_COLUMNS)]) == REPORT_COLUMNS else 0
    header = columns[start:]
    columns = [show_undecodable(column) for column in header]
    require_column_names(columns)
    description = _(SEPARATORS[separator]) % {"encoding": found.encoding.description}
    records = (build_row_record(line, columns, cells[start:]) for line, cells in rows)
    return Table(columns, records, description, found.warning, Layout(found.encoding, separator, header))


class RowLines:
    """The lines of a file. Those of a row, whose cells may have line ends, must not be too long together."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines = lines
        self.start = 1
        self.size = 0

    def __iter__(self) -> Iterator[str]:
        for line in self.lines:
            self.size += len(line)
            if self.size > MAX_RECORD_BYTES:
                raise build_endless_refusal(self.start)
            yield line

    def begin_row(self, line: int) -> None:
        self.start, self.size = line, 0


def find_separator(stream: BinaryIO, encoding: Encoding) -> str:
    """Returns the separator of which the first line has most outside of quotes."""
    first_line = next(iter_lines(stream, encoding), "")
    unquoted = "".join(first_line.split('"')[::2])
    return max(SEPARATORS, key=unquoted.count)


def iter_numbered_rows(reader: Any, lines: RowLines) -> Iterator[tuple[int, list[str]]]:
    """Yields the line on which each row begins, and its cells."""
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, [unescape_formula(cell) for cell in cells]
            line = reader.line_num + 1
            lines.begin_row(line)
    except csv.Error as error:
        raise UnreadableFile(_("Line %(line)s: %(error)s.") % {"line": line, "error": _(str(error))}) from error


def require_column_names(names: Sequence[str]) -> None:
    if not names or "" in names or len(names) != len(set(names)):
        raise UnreadableFile(_("The first line has a column without a name, or one twice."))


def build_row_record(line: int, columns: Sequence[str], cells: list[str]) -> Record:
    if len(cells) != len(columns):
        problem = ngettext(
            "It has %(count)d cell, and the first line %(columns)d.",
            "It has %(count)d cells, and the first line %(columns)d.",
            len(cells),
        )
        return Record(line, {}, cells, name_member("row", problem % {"count": len(cells), "columns": len(columns)}))
    return Record(line, dict(zip(columns, cells, strict=True)), cells)


def write_csv(pages: Pages) -> Iterator[bytes]:
    yield format_rows([EXPORTED_COLUMNS]).encode()
    for page in pages:
        yield format_rows(map(format_book, page)).encode()


def format_book(book: ExportedBook) -> list[str]:
    """Returns the cells of EXPORTED_COLUMNS."""
    cells = [FORMATS_BY_TYPE[type(value)](value) for value in get_values(book)]
    return [*cells, book.created_at.removesuffix("Z")]


def format_rows(rows: Iterable[Sequence[object]], separator: str = ",") -> str:
    # Lines end with CR LF (RFC 4180), so the writer quotes cells that contain CR or LF.
    lines = StringIO(newline="")
    csv.writer(lines, delimiter=separator).writerows(rows)
    return lines.getvalue()


class CSVRejectedFile:
    """The refused rows with the separator and the encoding in which they came, behind the line and the reason."""

    def __init__(self, stream: BinaryIO, table: Table) -> None:
        self.stream = stream
        self.encoding, self.separator, header = table.layout
        stream.write(self.encoding.mark)
        self.write_row([*REPORT_COLUMNS, *map(escape_formula, header)])

    def add(self, record: Record, reason: str) -> None:
        self.write_row([record.line, reason, *map(escape_cell, record.raw)])
        self.stream.flush()

    def write_row(self, cells: Sequence[object]) -> None:
        self.stream.write(self.encoding.encode(format_rows([cells], self.separator)))

    def close(self) -> None:
        pass


def escape_cell(cell: str) -> str:
    """Returns a negative number, such as a year, as it is."""
    return cell if parse_integer(cell.strip()) is not None else escape_formula(cell)
