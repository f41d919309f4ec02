"""Reads and writes books as JSON lines: one JSON object per line, in UTF-8. Also reads an array of objects."""

import re
from collections import Counter
from collections.abc import Iterator, Set
from itertools import islice
from typing import Any, BinaryIO

import msgspec
from django.utils.translation import gettext as _

from books.files.formats.records import READ_BYTES, Pages, Record, Table, UnreadableFile, name_field

BOM = b"\xef\xbb\xbf"
# The columns are the keys of the first so many objects.
HEAD_RECORDS = 100
# The process that requests the records cannot parse deeper values.
MAX_NESTING = 32
encoder = msgspec.json.Encoder()
# Where an error of the decoder is.
PLACE_PATTERN = re.compile("(?:byte|position) ([0-9]+)")
# A string, and the colon after it if it names a value.
STRING_PATTERN = re.compile(rb'"(?:[^"\\]++|\\.)*+"\s*(:?)', re.DOTALL)
# The first bytes of a file that contains one array.
ARRAY_PATTERN = re.compile(rb"[\xef\xbb\xbf]*\s*\[\s*[\[{\]]")


def read_jsonl(stream: BinaryIO, encoding_name: str = "") -> Table:
    """Raises UnreadableFile."""
    stream.seek(0)
    is_array = ARRAY_PATTERN.match(stream.read(READ_BYTES)) is not None
    names: dict[str, None] = {}
    for record in islice(iter_records(stream, is_array), HEAD_RECORDS):
        names |= dict.fromkeys(record.values)
    columns, left_out = [name for name in names if name], Counter[str]()
    records = count_other_keys(iter_records(stream, is_array), names.keys(), left_out)
    return Table(columns, records, "JSON, UTF-8" if is_array else "JSON lines, UTF-8", left_out=left_out)


def count_other_keys(records: Iterator[Record], columns: Set[str], left_out: Counter[str]) -> Iterator[Record]:
    for record in records:
        if not record.values.keys() <= columns:
            left_out.update(record.values.keys() - columns)
        yield record


def iter_records(stream: BinaryIO, is_array: bool) -> Iterator[Record]:
    stream.seek(0)
    return iter_elements(stream) if is_array else iter_lines(stream)


def iter_elements(stream: BinaryIO) -> Iterator[Record]:
    """Yields the elements of an array, each with its line number."""
    content = stream.read().lstrip(BOM)
    try:
        elements = msgspec.json.decode(content, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        place = PLACE_PATTERN.search(str(error))
        line = content.count(b"\n", 0, int(place[1]) if place else None) + 1
        raise UnreadableFile(_("The array is damaged on line %(line)s.") % {"line": line}) from error
    line, position = 1, 0
    for text in map(bytes, elements):
        start = content.index(text, position)
        line += content.count(b"\n", position, start)
        yield parse_line(line, text)
        line += text.count(b"\n")
        position = start + len(text)


def iter_lines(stream: BinaryIO) -> Iterator[Record]:
    for number, raw in enumerate(stream, 1):
        text = raw.lstrip(BOM)
        if text.strip():
            yield parse_line(number, text)


def parse_line(number: int, text: bytes) -> Record:
    try:
        values = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Record(number, {}, problem=name_field("row", _("It is not JSON in UTF-8.")))
    if not isinstance(values, dict):
        return Record(number, {}, problem=name_field("row", _("It is no JSON object.")))
    if not is_flat(values):
        limit = _("It is nested deeper than %(count)d.") % {"count": MAX_NESTING}
        return Record(number, {}, problem=name_field("row", limit))
    has_repetition = text.count(b":") > len(values) and STRING_PATTERN.findall(text).count(b":") > count_names(values)
    warnings = (name_field("row", _("It has two values of one name.")),) if has_repetition else ()
    return Record(number, values, warnings=warnings)


def count_names(value: Any) -> int:
    """Returns how many values the objects in a value have; of those with the same name the last counts."""
    if isinstance(value, dict):
        return len(value) + sum(map(count_names, value.values()))
    return sum(map(count_names, value)) if isinstance(value, list) else 0


def is_flat(value: Any, levels: int = MAX_NESTING) -> bool:
    """Whether arrays and objects are nested no deeper than so many levels."""
    if not isinstance(value, dict | list):
        return True
    items = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(is_flat(item, levels - 1) for item in items)


def write_jsonl(pages: Pages) -> Iterator[bytes]:
    """Writes the fields that version 2 of the API shows."""
    return map(encoder.encode_lines, pages)
