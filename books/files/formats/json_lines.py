"""Reads and writes books as JSON lines: a JSON object a line, in UTF-8. Reads an array of objects, too."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, BinaryIO

import msgspec
from django.utils.translation import gettext as _

from books.files.formats.records import (
    CHUNK_BYTES,
    REPORT_COLUMNS,
    Pages,
    Record,
    Table,
    TextRejectedFile,
    UnreadableFile,
    name_member,
)

BOM = b"\xef\xbb\xbf"
# The members of so many objects are the columns.
HEAD_RECORDS = 100
# Who asked for the records could not read deeper values.
MAX_NESTING = 32
encoder = msgspec.json.Encoder()
# A file of one array: what its first bytes look like, its strings and brackets, and what may be between its objects.
ARRAY_PATTERN = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*[\[{\]]")
TOKEN_PATTERN = re.compile(rb'"(?:[^"\\]|\\.|\\\Z)*+(?P<end>"|\Z)|[\[\]{}]', re.DOTALL)
GAP_SIGNS = b" \t\r\n,"


def read_json_lines(stream: BinaryIO, encoding_name: str = "") -> Table:
    """Raises UnreadableFile."""
    stream.seek(0)
    is_array = ARRAY_PATTERN.match(stream.read(CHUNK_BYTES)) is not None
    names: dict[str, None] = {}
    for record in islice(iter_records(stream, is_array), HEAD_RECORDS):
        names |= dict.fromkeys(record.values)
    columns = [name for name in names if name]
    return Table(columns, iter_records(stream, is_array), "JSON, UTF-8" if is_array else "JSON lines, UTF-8")


def iter_records(stream: BinaryIO, is_array: bool) -> Iterator[Record]:
    stream.seek(0)
    return iter_elements(stream) if is_array else iter_lines(stream)


def iter_elements(stream: BinaryIO) -> Iterator[Record]:
    """Yields the elements of an array, each with the line on which it begins. What is refused comes back as lines."""
    for line, text in ArrayReader(stream).read():
        yield parse_line(line, text.replace(b"\r", b" ").replace(b"\n", b" "))


class ArrayReader:
    """Finds the elements of an array. No more than one of them is in memory."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.buffer = b""
        # How many brackets are open, where the element begins, and up to where the buffer is read.
        self.depth = self.start = self.position = 0
        # The number of the line at a position of the buffer.
        self.line, self.line_position = 1, 0

    def read(self) -> Iterator[tuple[int, bytes]]:
        """Yields the line and the text of each element. Raises UnreadableFile."""
        while chunk := self.stream.read(CHUNK_BYTES):
            self.buffer += chunk
            yield from self.read_buffer()
            self.drop(self.start if self.depth > 1 else self.position)
        if self.depth or self.buffer.strip():
            line = self.count_lines(len(self.buffer) if self.depth < 2 else 0)
            raise UnreadableFile(_("Line %(line)s: the array is damaged, or has no end.") % {"line": line})

    def read_buffer(self) -> Iterator[tuple[int, bytes]]:
        for match in TOKEN_PATTERN.finditer(self.buffer, self.position):
            if match["end"] == b"":
                return
            if self.depth < 2:
                self.require_element(match)
            if match["end"] is None:
                yield from self.handle_bracket(match)
            self.position = match.end()

    def require_element(self, match: "re.Match[bytes]") -> None:
        """Raises UnreadableFile if something else is in the array."""
        gap = self.buffer[self.position : match.start()].removeprefix(BOM)
        if match["end"] or gap.strip(GAP_SIGNS):
            line = self.count_lines(match.start())
            raise UnreadableFile(_("Line %(line)s: the array has something that is no object.") % {"line": line})

    def handle_bracket(self, match: "re.Match[bytes]") -> Iterator[tuple[int, bytes]]:
        is_opening = match[0] in b"[{"
        if is_opening and self.depth == 1:
            self.start = match.start()
        self.depth += 1 if is_opening else -1
        if self.depth == 1 and not is_opening:
            yield self.count_lines(self.start), self.buffer[self.start : match.end()]

    def count_lines(self, position: int) -> int:
        """Returns the number of the line at this position, which is not before that of the call before."""
        self.line += self.buffer.count(b"\n", self.line_position, position)
        self.line_position = position
        return self.line

    def drop(self, count: int) -> None:
        """Forgets the beginning of the buffer."""
        self.count_lines(count)
        self.buffer = self.buffer[count:]
        self.start, self.position, self.line_position = self.start - count, self.position - count, 0


def iter_lines(stream: BinaryIO) -> Iterator[Record]:
    for number, raw in enumerate(stream, 1):
        text = raw.removeprefix(BOM) if number == 1 else raw
        if text.strip():
            record = parse_line(number, text)
            if not is_note(record.values):
                yield record


def parse_line(number: int, text: bytes) -> Record:
    raw = text if text.endswith(b"\n") else text + b"\n"
    try:
        values = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Record(number, {}, raw, name_member("row", _("It is not JSON. %(error)s") % {"error": error}))
    if not isinstance(values, dict):
        return Record(number, {}, raw, name_member("row", _("It is no JSON object.")))
    if not is_flat(values):
        limit = _("It is nested deeper than %(count)d.") % {"count": MAX_NESTING}
        return Record(number, {}, raw, name_member("row", limit))
    return Record(number, values, raw)


def is_flat(value: Any) -> bool:
    """Whether arrays and objects are nested no deeper than MAX_NESTING."""
    containers = [value]
    for _level in range(MAX_NESTING):
        items = chain.from_iterable(map(iter_items, containers))
        containers = [item for item in items if isinstance(item, dict | list)]
    return not containers


def iter_items(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def is_note(values: Any) -> bool:
    """Whether a line is the note that a file of refused lines has before each."""
    return tuple(values) == REPORT_COLUMNS


def write_json_lines(pages: Pages) -> Iterator[bytes]:
    """Writes the members that version 2 of the interface shows."""
    return map(encoder.encode_lines, pages)


class JSONLinesRejectedFile(TextRejectedFile):
    """Before each refused line there is one with its number and the reason."""

    def format_note(self, line: int, reason: str) -> bytes:
        return encoder.encode({"line": line, "reason": reason}) + b"\n"
