"""Reads and writes MARC 21 records in the exchange format (ISO 2709).

A reader that trusts the length in a record's leader stops at the first wrong length. This one splits the file at the
ends of records, corrects the lengths, and compares each directory with its fields.
"""

import logging
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stderr
from io import StringIO
from typing import BinaryIO

import pymarc
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from pymarc.exceptions import BadSubfieldCodeWarning, PymarcException

from books.files.formats.encodings import ENCODINGS, MARC_8, MARC_PADDING, UTF_8, Encoding
from books.files.formats.marc_fields import build_record, parse_record
from books.files.formats.records import (
    COLUMNS,
    READ_BYTES,
    Pages,
    Record,
    Rejected,
    Table,
    UnreadableRecord,
    name_field,
)

# pymarc also logs what is unusual about a record, and warns where it guesses the code of a subfield.
logging.getLogger("pymarc").setLevel(logging.ERROR)
warnings.simplefilter("error", BadSubfieldCodeWarning)

LEADER_BYTES = 24
ENTRY_BYTES = 12
END_OF_FIELD, END_OF_RECORD = b"\x1e", b"\x1d"
# A leader that does not follow the end of a record.
LEADER_AFTER_FIELD = re.compile(rb"(?<=\x1e)(?=[0-9]{5}[a-z]{2}[a-z ][a ][a ]22[0-9]{5}...4500)", re.DOTALL)
DIRECTORY_PATTERN = re.compile(rb"(?:[0-9A-Za-z]{3}[0-9]{9})+")
UNICODE = b"a"
# What UTF-8 and MARC-8 have in common: ASCII, without escapes and control characters but the ends of MARC.
PLAIN = re.compile(rb"[\x1d-\x7e]*")
# Escapes without a character set, control characters, and accents (from E0 on) at the end of a text: an accent belongs
# to the letter after it (MARC 21, Character Sets, MARC-8).
UNKNOWN_MARC_8 = re.compile(
    rb"\x1b(?![(,)\-][!-~]|\$[,)\-]?1|[gbps])|[\x00-\x1a\x1c\x7f-\x87\x8a-\x8c\x8f-\x9f]|[\xe0-\xfe][\x1e\x1f]"
)


def read_marc(stream: BinaryIO, encoding_name: str = "") -> Table:
    """A chosen encoding overrides the leaders of the records. Raises UnreadableFile."""
    encoding = ENCODINGS.get(encoding_name)
    left_out = Counter[str]()
    records = iter_records(stream, encoding, left_out)
    if encoding:
        return Table(COLUMNS, records, f"MARC 21, {encoding.name}", left_out=left_out)
    warning, notes = describe_wrong_leaders(stream)
    return Table(COLUMNS, records, "MARC 21", warning, notes, left_out=left_out)


def describe_wrong_leaders(stream: BinaryIO) -> tuple[str, list[str]]:
    """Returns a warning about records that are not in UTF-8 as they declare, and a note about those that are in it
    though they declare MARC-8, as far as the bytes show; empty if there are none.
    """
    pieces = (piece.lstrip(MARC_PADDING) for piece in iter_pieces(stream))
    found = Counter(
        piece[9:10] == UNICODE
        for piece in pieces
        if not piece.isascii() and is_utf_8(piece) != (piece[9:10] == UNICODE)
    )
    warning = ngettext(
        "%(count)d record says that it is in UTF-8, and is not. It may be in MARC-8 or Windows-1252 (Latin-1).",
        "%(count)d records say that they are in UTF-8, and are not. They may be in MARC-8 or Windows-1252 (Latin-1).",
        found[True],
    )
    note = ngettext(
        "%(count)d record says that it is in MARC-8, and is read as UTF-8, because its bytes are.",
        "%(count)d records say that they are in MARC-8, and are read as UTF-8, because their bytes are.",
        found[False],
    )
    return (
        warning % {"count": found[True]} if found[True] else "",
        [note % {"count": found[False]}] if found[False] else [],
    )


def iter_records(stream: BinaryIO, encoding: Encoding | None, left_out: Counter[str]) -> Iterator[Record]:
    """Yields a record for each part of the file that ends like one. Raises UnreadableFile."""
    for number, raw in enumerate(iter_pieces(stream), 1):
        try:
            record, unsure = read_record(raw.lstrip(MARC_PADDING), encoding)
        except UnreadableRecord as error:
            yield Record(number, {}, raw, name_field("record", str(error)))
        else:
            yield parse_record(record, number, raw, left_out, unsure)


def iter_pieces(stream: BinaryIO) -> Iterator[bytes]:
    """Splits the file at the ends of records. The last record may have no end."""
    stream.seek(0)
    rest = b""
    while chunk := stream.read(READ_BYTES):
        *pieces, rest = (rest + chunk).split(END_OF_RECORD)
        for piece in pieces:
            yield from split_joined_records(piece + END_OF_RECORD)
    if rest.strip(MARC_PADDING):
        yield from split_joined_records(rest)


def split_joined_records(piece: bytes) -> Iterator[bytes]:
    """Yields the records of a part of the file. If only the end of a record is missing, it is added."""
    for record in LEADER_AFTER_FIELD.split(piece):
        yield record + END_OF_RECORD if record.endswith(END_OF_FIELD) else record


def read_record(data: bytes, chosen: Encoding | None) -> tuple[pymarc.Record, tuple[str, ...]]:
    """Returns the record and the warnings about it. Raises UnreadableRecord."""
    # pymarc needs a tenth of the time for UTF-8.
    has_utf_8 = data[9:10] == UNICODE or (is_utf_8(data) if not data.isascii() else bool(PLAIN.fullmatch(data)))
    encoding = chosen or (UTF_8 if has_utf_8 else MARC_8)
    data = repair_leader(data, UNICODE if encoding is UTF_8 else b" ")
    require_whole_directory(data)
    # pymarc replaces unknown MARC-8 characters by spaces, and reports them only on standard error.
    messages = StringIO()
    try:
        with redirect_stderr(messages) if encoding is MARC_8 else nullcontext():
            record = pymarc.Record(data=data, file_encoding=encoding.codec)
    except UnicodeDecodeError as error:
        raise UnreadableRecord(_("It is not in %(encoding)s.") % {"encoding": encoding.name}) from error
    except (PymarcException, BadSubfieldCodeWarning, ValueError, LookupError, TypeError) as error:
        raise UnreadableRecord(_("It cannot be read.")) from error
    has_unknown_characters = encoding is MARC_8 and (bool(messages.getvalue()) or bool(UNKNOWN_MARC_8.search(data)))
    return record, (_("It has characters that its encoding, MARC-8, does not know."),) if has_unknown_characters else ()


def is_utf_8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def repair_leader(data: bytes, coding: bytes) -> bytes:
    """Returns the record with correct values in its leader: length, coding scheme, and base address of data.

    Raises UnreadableRecord.
    """
    if not data.endswith(END_OF_RECORD):
        raise UnreadableRecord(_("It is cut off: the end of the record is missing."))
    leader, directory_end = data[:LEADER_BYTES], data.find(END_OF_FIELD, LEADER_BYTES)
    if not leader.isascii() or directory_end < 0:
        raise UnreadableRecord(_("It has no leader and no directory."))
    # The length has five digits. Longer records are read, too.
    length, address = min(len(data), 99_999), directory_end + 1
    head = b"%05d%b%b%b%05d%b" % (length, leader[5:9], coding, leader[10:12], address, leader[17:])
    return head + data[LEADER_BYTES:]


def require_whole_directory(data: bytes) -> None:
    """Raises UnreadableRecord unless the directory names all fields and nothing else.

    pymarc would silently read only a part of a field or record.
    """
    address = int(data[12:17])
    directory, fields = data[LEADER_BYTES : address - 1], data[address:-1]
    if not DIRECTORY_PATTERN.fullmatch(directory):
        raise UnreadableRecord(_("Its directory is damaged."))
    covered_bytes = 0
    for entry in (directory[start : start + ENTRY_BYTES] for start in range(0, len(directory), ENTRY_BYTES)):
        length, start = int(entry[3:7]), int(entry[7:12])
        field = fields[start : start + length]
        if len(field) != length or field.find(END_OF_FIELD) != length - 1:
            raise UnreadableRecord(_("Its directory does not fit field %(tag)s.") % {"tag": entry[:3].decode()})
        covered_bytes += length
    if covered_bytes != len(fields):
        sentence = ngettext(
            "Its directory covers %(covered)d of %(count)d byte.",
            "Its directory covers %(covered)d of %(count)d bytes.",
            len(fields),
        )
        raise UnreadableRecord(sentence % {"covered": covered_bytes, "count": len(fields)})


def write_marc(pages: Pages) -> Iterator[bytes]:
    for page in pages:
        yield b"".join([build_record(book).as_marc() for book in page])


def write_rejected_marc(table: Table, rejected: Rejected) -> Iterator[bytes]:
    """Writes the records as they are in the file. The format cannot contain reasons."""
    return (record.raw for record, _reason in rejected)
