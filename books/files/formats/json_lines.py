"""Reads and writes books as JSON lines: a JSON object a line, in UTF-8."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, BinaryIO

import msgspec
from django.utils.translation import gettext as _

from books.files.formats.limits import MAX_NESTING, require_few_columns
from books.files.formats.records import (
    MAX_RECORD_BYTES,
    REPORT_COLUMNS,
    Pages,
    Record,
    Table,
    TextRejectedFile,
    UnreadableFile,
    format_count,
    name_member,
)

BOM = b"\xef\xbb\xbf"
# The members of so many objects are the columns.
HEAD_RECORDS = 100
encoder = msgspec.json.Encoder()


def read_json_lines(stream: BinaryIO, encoding_name: str = "") -> Table:
    """Raises UnreadableFile."""
    names: dict[str, None] = {}
    for record in islice(iter_records(stream), HEAD_RECORDS):
        names |= dict.fromkeys(record.values)
        require_few_columns(names)
    return Table(list(names), iter_records(stream), "JSON lines, UTF-8")


def iter_records(stream: BinaryIO) -> Iterator[Record]:
    stream.seek(0)
    number = 0
    while raw := stream.readline(MAX_RECORD_BYTES):
        number += 1
        if len(raw) == MAX_RECORD_BYTES:
            limits = {"line": number, "count": format_count(MAX_RECORD_BYTES)}
            raise UnreadableFile(_("Line %(line)s is longer than %(count)s bytes.") % limits)
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
