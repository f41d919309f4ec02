"""Reads the parts of a workbook (ECMA-376) element by element, without a tree in memory.

What a part says about itself is not believed: rows that are missing are not made, and each limit is counted.
"""

import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Generic, NamedTuple, TypeVar
from xml.parsers.expat import ParserCreate
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from django.utils.translation import gettext as _
from openpyxl.styles.numbers import builtin_format_code, is_date_format, is_timedelta_format
from openpyxl.utils import column_index_from_string
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900, from_excel, from_ISO8601

from books.files.formats.csv_cells import TEXT_FORMULA
from books.files.formats.limits import Allowance, build_refusal, require_few_names, require_flat
from books.files.formats.records import CHUNK_BYTES, MAX_RECORD_BYTES, FailedFormula, UnreadableFile, format_count

# A small file can unpack to a huge one. This counts each part as often as it is read, and each text as often as cells
# show it.
MAX_UNPACKED_BYTES = 2 * 2**30
# Of all parts but the sheets, and of the texts that cells share once they are in memory.
MAX_SHARED_BYTES = 64 * 2**20
MAX_SHARED_MEMORY = 192 * 2**20
# Sheets of books shrink to a tenth, and hardly any to a hundredth. Small parts may shrink to anything.
MAX_RATIO = 200
SMALL_BYTES = 2**20
# The list of parts is in memory at once.
MAX_DIRECTORY_BYTES = 2**20
# What spreadsheet programs hold (Excel specifications and limits).
MAX_ROWS, MAX_CELLS = 1_048_576, 16_384
MAX_FORMAT_LENGTH = 255
COORDINATE_PATTERN = re.compile("([A-Za-z]{1,3})[0-9]{1,7}")
# `_x0041_` is a character that XML cannot hold, or that it would read otherwise (ECMA-376 Part 1, 22.9.2.19).
ESCAPE_PATTERN = re.compile("_x([0-9A-Fa-f]{4})_")
# What programs that do not reckon write as the result of a formula. A reference to an empty cell is 0, too.
NO_RESULTS = ("", "0")
FIRST_DATES = {False: CALENDAR_WINDOWS_1900, True: CALENDAR_MAC_1904}
Item = TypeVar("Item")


class BoundedReads:
    """A stream of which nobody reads very much at once, whatever the file says about its parts."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.seek, self.tell = stream.seek, stream.tell

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(MAX_DIRECTORY_BYTES + 1 if size < 0 else min(size, MAX_DIRECTORY_BYTES + 1))
        if len(data) > MAX_DIRECTORY_BYTES:
            raise build_unpacked_refusal()
        return data


class Package:
    """The parts of a workbook, by their names."""

    def __init__(self, stream: BinaryIO) -> None:
        """Raises UnreadableFile, and what zipfile raises for bad input."""
        self.archive = ZipFile(BoundedReads(stream))
        self.parts = {part.filename: part for part in self.archive.infolist()}
        if len(self.parts) != len(self.archive.infolist()):
            raise UnreadableFile(_("The workbook has a part twice."))
        if any(map(is_too_dense, self.parts.values())):
            raise build_unpacked_refusal()
        sentence = _("Its parts are too large when they are unpacked.")
        self.allowance = Allowance(MAX_UNPACKED_BYTES, sentence)
        self.shared_allowance = Allowance(MAX_SHARED_BYTES, sentence)

    def iter_chunks(self, name: str) -> Iterator[bytes]:
        """Yields what is in a part that all sheets share, nothing if there is none."""
        for chunk in self.iter_sheet_chunks(name) if name in self.parts else ():
            self.shared_allowance.take(len(chunk))
            yield chunk

    def iter_sheet_chunks(self, name: str) -> Iterator[bytes]:
        with self.archive.open(self.parts[name]) as part:
            while chunk := part.read(CHUNK_BYTES):
                self.allowance.take(len(chunk))
                yield chunk


def is_too_dense(part: ZipInfo) -> bool:
    """Whether a part unpacks to much more than there is of it. The formats allow one way to pack only (ECMA-376-2)."""
    if part.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        return True
    return part.file_size > SMALL_BYTES and part.file_size > MAX_RATIO * part.compress_size


def build_unpacked_refusal() -> UnreadableFile:
    return UnreadableFile(_("The workbook is too large when it is unpacked."))


class PartReader(Generic[Item]):
    """Passes the elements of a part to a subclass, which appends to `found` what it makes of them."""

    # The elements whose text the subclass gets.
    text_paths: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.found: list[Item] = []
        self.paths = [""]
        self.texts: list[str] = []
        self.text_length = 0
        self.names: dict[str, str] = {}
        self.parser = ParserCreate(intern=self.names)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.handle_start
        self.parser.EndElementHandler = self.handle_end
        self.parser.CharacterDataHandler = self.handle_text
        # Without a document type no entity can be defined, whose replacement could fill the memory.
        self.parser.StartDoctypeDeclHandler = self.refuse_document_type

    def read(self, chunks: Iterator[bytes]) -> Iterator[Item]:
        """Raises UnreadableFile, and what the parser raises for bad input."""
        size = 0
        for chunk in chunks:
            self.parser.Parse(chunk)
            size += len(chunk)
            require_few_names(self.names)
            # The parser reads a tag without an end from its beginning again.
            if size - self.parser.CurrentByteIndex > MAX_RECORD_BYTES:
                raise build_refusal(_("An element has no end within %(count)s bytes.") % format_limit())
            yield from self.found
            self.found.clear()
        # A part that is not there has no end to check.
        self.parser.Parse(b"", size > 0)
        yield from self.found

    def handle_start(self, name: str, attributes: dict[str, str]) -> None:
        # Namespaces have prefixes, which nothing here depends on.
        path = f"{self.paths[-1]}/{name.rpartition(':')[2]}"
        self.paths.append(path)
        require_flat(len(self.paths) - 1)
        self.start(path, attributes)

    def handle_text(self, text: str) -> None:
        if self.paths[-1] in self.text_paths:
            self.text_length += len(text)
            if self.text_length > MAX_RECORD_BYTES:
                raise build_refusal(_("A cell has more than %(count)s characters.") % format_limit())
            self.texts.append(text)

    def handle_end(self, name: str) -> None:
        self.end(self.paths.pop())

    def take_text(self) -> str:
        """Returns the text since it was taken last."""
        text = "".join(self.texts)
        self.texts, self.text_length = [], 0
        return text

    def refuse_document_type(self, *_arguments: Any) -> None:
        raise UnreadableFile(_("The XML defines a document type or entities. Such files are not read."))

    def start(self, path: str, attributes: Mapping[str, str]) -> None:
        pass

    def end(self, path: str) -> None:
        pass


def format_limit() -> dict[str, str]:
    return {"count": format_count(MAX_RECORD_BYTES)}


class Relation(NamedTuple):
    id: str
    kind: str
    target: str


class RelationReader(PartReader[Relation]):
    """Finds the parts that a part names (ECMA-376-2, 9.3)."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder

    def start(self, path: str, attributes: Mapping[str, str]) -> None:
        if path == "/Relationships/Relationship" and attributes.get("TargetMode") != "External":
            # A target that begins with a slash is absolute.
            target = posixpath.normpath(posixpath.join("/", self.folder, attributes["Target"])).lstrip("/")
            self.found.append(Relation(attributes["Id"], attributes["Type"].rpartition("/")[2], target))


def list_relations(package: Package, name: str) -> list[Relation]:
    """Returns the relations of a part; those of the package itself have the name ""."""
    folder, file = posixpath.split(name)
    return list(RelationReader(folder).read(package.iter_chunks(posixpath.join(folder, "_rels", f"{file}.rels"))))


class WorkbookReader(PartReader[str]):
    """Finds the ids of the sheets in their order, and how the workbook counts days."""

    counts_from_1904 = False

    def start(self, path: str, attributes: Mapping[str, str]) -> None:
        if path == "/workbook/workbookPr":
            self.counts_from_1904 = attributes.get("date1904") in ("1", "true")
        elif path == "/workbook/sheets/sheet":
            self.found.extend(value for name, value in attributes.items() if name.rpartition(":")[2] == "id")


class DateStyles(NamedTuple):
    """The numbers of the styles that show a number as a time, and of those that show a length of time."""

    times: frozenset[int]
    durations: frozenset[int]


class StyleReader(PartReader[str]):
    """Finds the code of the number format of each style, "" where it has none, or one that is too long to examine."""

    def __init__(self) -> None:
        super().__init__()
        self.codes: dict[int, str] = {}

    def start(self, path: str, attributes: Mapping[str, str]) -> None:
        if path == "/styleSheet/numFmts/numFmt":
            self.codes[int(attributes["numFmtId"])] = attributes.get("formatCode", "")
        elif path == "/styleSheet/cellXfs/xf":
            number = int(attributes.get("numFmtId", "0"))
            code = self.codes[number] if number in self.codes else builtin_format_code(number)
            self.found.append(code if code and len(code) <= MAX_FORMAT_LENGTH else "")


def read_date_styles(package: Package, name: str) -> DateStyles:
    codes = list(StyleReader().read(package.iter_chunks(name)))
    times, durations = ({code for code in set(codes) if check(code)} for check in (is_date_format, is_timedelta_format))
    return DateStyles(
        frozenset(number for number, code in enumerate(codes) if code in times),
        frozenset(number for number, code in enumerate(codes) if code in durations),
    )


class SharedTextReader(PartReader[str]):
    text_paths = frozenset({"/sst/si/t", "/sst/si/r/t"})

    def __init__(self) -> None:
        super().__init__()
        sentence = _("The texts of its cells take too much memory.")
        self.allowance = Allowance(MAX_SHARED_MEMORY, sentence)

    def end(self, path: str) -> None:
        if path == "/sst/si":
            text = self.take_text()
            self.allowance.take(sys.getsizeof(text))
            self.found.append(unescape_text(text))


class Row(NamedTuple):
    """`cells` are by the number of the column, from 1, without empty ones."""

    number: int
    cells: Mapping[int, Any]


class RowReader(PartReader[Row]):
    """Reads the rows of a sheet."""

    text_paths = frozenset(f"/worksheet/sheetData/row/c/{end}" for end in ("f", "v", "is/t", "is/r/t"))

    def __init__(self, workbook: "OpenWorkbook") -> None:
        super().__init__()
        self.workbook = workbook
        self.number = self.column = self.cell_count = self.row_length = 0
        self.cells: dict[int, Any] = {}
        self.kind, self.style = "n", 0
        self.formula: str | None = None

    def start(self, path: str, attributes: Mapping[str, str]) -> None:
        if path == "/worksheet/sheetData/row":
            self.start_row(attributes.get("r"))
        elif path == "/worksheet/sheetData/row/c":
            self.start_cell(attributes)

    def start_row(self, text: str | None) -> None:
        number = parse_row_number(text) if text else self.number + 1
        if number <= self.number:
            rows = {"row": number, "earlier": self.number}
            raise UnreadableFile(_("A sheet is not in order: row %(row)d comes behind row %(earlier)d.") % rows)
        if number > MAX_ROWS:
            limit = {"count": format_count(MAX_ROWS)}
            raise build_refusal(_("A sheet has more than %(count)s rows.") % limit)
        self.number, self.column, self.cell_count, self.row_length, self.cells = number, 0, 0, 0, {}

    def start_cell(self, attributes: Mapping[str, str]) -> None:
        self.cell_count += 1
        coordinate = attributes.get("r")
        self.column = parse_column(coordinate) if coordinate else self.column + 1
        if max(self.cell_count, self.column) > MAX_CELLS:
            raise build_refusal(_("A row has more than %(count)s cells.") % {"count": format_count(MAX_CELLS)})
        self.kind, self.style = attributes.get("t", "n"), int(attributes.get("s") or 0)
        self.formula = None

    def end(self, path: str) -> None:
        if path == "/worksheet/sheetData/row/c":
            if (value := self.read_value(self.take_text())) is not None:
                self.add_cell(value)
        elif path == "/worksheet/sheetData/row/c/f":
            self.formula = self.take_text()
        elif path == "/worksheet/sheetData/row":
            self.found.append(Row(self.number, self.cells))

    def read_value(self, text: str) -> Any:
        """Returns None for an empty cell."""
        if self.formula is not None and (constant := TEXT_FORMULA.fullmatch(f"={self.formula}")):
            return constant[1].replace('""', '"')
        if self.formula is not None and self.kind == "n" and text in NO_RESULTS:
            return FailedFormula()
        return self.workbook.parse_value(text, self.kind, self.style) if text else None

    def add_cell(self, value: Any) -> None:
        self.cells[self.column] = value
        self.row_length += len(value) if isinstance(value, str) else 1
        if self.row_length > MAX_RECORD_BYTES:
            raise build_refusal(_("A row has more than %(count)s characters.") % format_limit())


def parse_row_number(text: str) -> int:
    """Some programs write whole numbers as `1.0`."""
    number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)


def parse_column(coordinate: str) -> int:
    match = COORDINATE_PATTERN.fullmatch(coordinate)
    if not match:
        raise ValueError(coordinate)
    return column_index_from_string(match[1])


class OpenWorkbook:
    """A workbook whose sheets are read row by row. `sheets` are the names of their parts."""

    def __init__(self, stream: BinaryIO) -> None:
        """Raises UnreadableFile, and what zipfile, the parser and conversions raise for bad input."""
        self.package = Package(stream)
        main_part = find_targets(list_relations(self.package, ""), "officeDocument")[0]
        relations = list_relations(self.package, main_part)
        reader = WorkbookReader()
        targets = {relation.id: relation.target for relation in relations if relation.kind == "worksheet"}
        ids = list(reader.read(self.package.iter_chunks(main_part)))
        self.sheets = [targets[id] for id in ids if targets.get(id) in self.package.parts]
        self.first_date = FIRST_DATES[reader.counts_from_1904]
        self.shared_texts = self.read_shared_texts(relations)
        self.date_styles = read_date_styles(self.package, next(iter(find_targets(relations, "styles")), ""))

    def read_shared_texts(self, relations: Sequence[Relation]) -> list[str]:
        names = find_targets(relations, "sharedStrings")[:1]
        return [text for name in names for text in SharedTextReader().read(self.package.iter_chunks(name))]

    def iter_rows(self, sheet: str) -> Iterator[Row]:
        """Yields the rows that are there, with rising numbers. Raises what the constructor raises."""
        return RowReader(self).read(self.package.iter_sheet_chunks(sheet))

    def parse_value(self, text: str, kind: str, style: int) -> Any:
        if kind == "s":
            return self.find_shared_text(int(text))
        if kind == "b":
            return bool(int(text))
        if kind == "e":
            return FailedFormula(unescape_text(text))
        if kind == "d":
            return from_ISO8601(text)  # type: ignore[no-untyped-call]
        return self.parse_number(text, style) if kind == "n" else unescape_text(text)

    def find_shared_text(self, number: int) -> str:
        if number < 0:
            raise IndexError(number)
        text = self.shared_texts[number]
        # Each cell that shows it is work again.
        self.package.allowance.take(len(text))
        return text

    def parse_number(self, text: str, style: int) -> Any:
        number = float(text) if set(text) & set(".eE") else int(text)
        if style not in self.date_styles.times:
            return number
        try:
            return from_excel(number, self.first_date, timedelta=style in self.date_styles.durations)
        except (OverflowError, ValueError):
            return FailedFormula("#VALUE!")


def find_targets(relations: Iterable[Relation], kind: str) -> list[str]:
    return [relation.target for relation in relations if relation.kind == kind]


def unescape_text(text: str) -> str:
    return ESCAPE_PATTERN.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text
