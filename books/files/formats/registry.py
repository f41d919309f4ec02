"""The file formats for books."""

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any, BinaryIO, cast

from django.utils.translation import gettext as _

from books.files.formats.encodings import ENCODINGS, MARC_ENCODINGS, MARC_PADDING, TEXT_ENCODINGS
from books.files.formats.other_kinds import ELEMENT, find_other_kind
from books.files.formats.records import Pages, Rejected, Table, UnreadableFile

Reader = Callable[[BinaryIO, str], Table]


@dataclass(frozen=True)
class Format:
    """`reader` takes a stream that can be read repeatedly, and the name of an encoding or "".

    `reader` is None for a format that is only exported, `write` for one that cannot be streamed. Files of a format
    without `encodings` declare their encoding themselves.
    """

    name: str
    label: str
    extension: str
    media_type: str
    reader: Reader | None
    write: Callable[[Pages], Iterator[bytes]] | None
    encodings: tuple[str, ...] = TEXT_ENCODINGS

    @property
    def content_type(self) -> str:
        return f"{self.media_type}; charset=utf-8" if self.media_type.startswith("text/") else self.media_type

    def read(self, stream: BinaryIO, encoding_name: str) -> Table:
        """Raises UnreadableFile."""
        if encoding_name and self.encodings and encoding_name not in self.encodings:
            names = {"format": self.label, "encoding": ENCODINGS[encoding_name].name}
            raise UnreadableFile(_("%(format)s is not read as %(encoding)s.") % names)
        return cast("Reader", self.reader)(stream, encoding_name)


def import_later(module: str, name: str) -> Callable[..., Any]:
    """Returns a function that imports a function or a class when it is called, and calls it.

    The libraries of some formats take a tenth of a second to import. Only processes that need them import them.
    """

    def call(*args: Any) -> Any:
        return getattr(import_module(f"books.files.formats.{module}"), name)(*args)

    return call


def build_format(
    name: str, extension: str, label: str, media_type: str, module: str, encodings: tuple[str, ...] = TEXT_ENCODINGS
) -> Format:
    """Returns a format whose module has the functions `read_NAME` and `write_NAME`."""
    read, write = import_later(module, f"read_{name}"), import_later(module, f"write_{name}")
    return Format(name, label, extension, media_type, read, write, encodings)


# A workbook cannot be streamed: `write_xlsx` takes the pages and a stream.
XLSX_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLSX = Format(
    "xlsx", "XLSX (Excel, LibreOffice)", ".xlsx", XLSX_TYPE, import_later("workbooks", "read_workbook"), None, ()
)
write_xlsx = import_later("xlsx_files", "write_xlsx")
FORMATS = {
    format.name: format
    for format in (
        build_format("csv", ".csv", "CSV", "text/csv", "csv_files"),
        build_format("jsonl", ".jsonl", "JSON lines", "application/x-ndjson", "json_lines"),
        build_format("marc", ".mrc", "MARC 21", "application/marc", "marc", MARC_ENCODINGS),
        build_format("marcxml", ".xml", "MARCXML", "application/marcxml+xml", "marc_xml", ()),
        build_format("bibtex", ".bib", "BibTeX", "application/x-bibtex", "bibtex"),
        build_format("ris", ".ris", "RIS", "application/x-research-info-systems", "ris"),
        XLSX,
    )
}
# Rejected records of these formats are returned in the same format, all others as CSV.
REJECTED_WRITERS: dict[str, Callable[[Table, Rejected], Iterator[bytes]]] = {
    name: import_later(module, f"write_rejected_{name}")
    for name, module in (("csv", "csv_files"), ("marc", "marc"), ("marcxml", "marc_xml"))
}
# The formats that can be streamed, by media type.
STREAMED_FORMATS = {format.media_type: format for format in FORMATS.values() if format.write}
HEAD_BYTES = 2**16
# The first characters of the formats, which few other files have. Some programs number RIS records, or write one space
# after a tag.
BEGINNINGS = {
    "marcxml": re.compile(rf"<.*?MARC21/slim|{ELEMENT}(?:collection|leader|controlfield|datafield)[\s/>]", re.DOTALL),
    "bibtex": re.compile(r"[@%](?:.*?^[ \t]*@)?\s*[A-Za-z]+\s*[{(]", re.DOTALL | re.MULTILINE),
    "ris": re.compile(r"(?:[0-9]{1,9}\.?\s+)?(?:TY|N1) {1,2}-"),
}
# The formats whose files can begin with any text, if it contains this one.
SIGNS = {
    "marc": re.compile("[\x1d\x1e]"),
    "bibtex": re.compile(r"@\s*[A-Za-z]+\s*[{(]"),
    "ris": re.compile("^TY {1,2}-", re.MULTILINE),
}
JSON_BEGINNING = re.compile(r"\{|\[\s*[\[{\]]")
# By extension, the formats whose files can begin with any bytes.
HINTS = {
    **{format.extension: format.name for format in FORMATS.values() if format.name not in ("xlsx", "marcxml")},
    ".marc": "marc",
    ".bibtex": "bibtex",
    ".json": "jsonl",
    ".ndjson": "jsonl",
}
# The first bytes of workbooks: archives (XLSX, ODS) and compound files (XLS).
WORKBOOK_BEGINNINGS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


def register_export_format(format: Format) -> None:
    """Adds a format of an app beside this one, while apps get ready. Files are read in a process without apps."""
    FORMATS[format.name] = STREAMED_FORMATS[format.media_type] = format


def find_format(stream: BinaryIO, file_name: str = "") -> Format:
    """Returns the format of a file by its first bytes, else by its name, else CSV.

    Raises UnreadableFile for an empty file, and for a kind of file that is not read.
    """
    stream.seek(0)
    head = stream.read(HEAD_BYTES)
    if head.startswith(WORKBOOK_BEGINNINGS):
        return XLSX
    leader = head.lstrip(MARC_PADDING)
    if leader[:5].isdigit() and leader[20:22] == b"45":
        return FORMATS["marc"]
    is_utf_16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    # A replacement character in a book is no sign of bytes that are not UTF-8.
    known = head if is_utf_16 else head.replace("\ufffd".encode(), b"?")
    text = known.decode("utf-16" if is_utf_16 else "utf-8-sig", "replace").strip("\0\ufeff").lstrip()
    extension = PurePath(file_name).suffix.lower()
    if not text:
        raise UnreadableFile(_("The file is empty."))
    if name := next((name for name, pattern in BEGINNINGS.items() if pattern.match(text)), ""):
        return FORMATS[name]
    hint = HINTS.get(extension, "csv")
    if hint in SIGNS and SIGNS[hint].search(text):
        return FORMATS[hint]
    if kind := find_other_kind(text, extension):
        raise UnreadableFile(kind.describe())
    return FORMATS["jsonl" if JSON_BEGINNING.match(text) or hint == "jsonl" else "csv"]


def find_format_by_name(path: Path) -> Format | None:
    """Returns the format for the extension of a file name."""
    return next((format for format in FORMATS.values() if format.extension == path.suffix.lower()), None)
