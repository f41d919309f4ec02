"""What a reader does with an untrusted file. It requests the parts of the file, and has no other access."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from socket import socket
from typing import Any

from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from books.files.columns.cells import has_no_isbn, list_sources, read_field
from books.files.columns.tables import guess_mapping
from books.files.formats.encodings import ENCODINGS, TEXT_ENCODINGS, show_storable, show_undecodable
from books.files.formats.records import (
    MAX_SHOWN_TEXT,
    Record,
    Table,
    UnreadableFile,
    describe_left_out,
    format_count,
    name_field,
)
from books.files.formats.registry import FORMATS, REJECTED_WRITERS, Format, find_format, propose_encodings
from books.files.sandbox import messages
from books.files.sandbox.streams import open_chunks

# The records that a preview shows, and those of which it counts how many have no ISBN.
SHOWN_RECORDS, COUNTED_RECORDS = 5, 10_000
# Columns are stored and shown, so their number and the total length of their names are limited.
MAX_COLUMNS, MAX_COLUMN_CHARACTERS = 1_000, 100_000
# The limits of an operation and of a record. A character of a text in a message has up to twelve bytes.
MAX_RECORDS, MAX_RECORD_CHARACTERS = 10_000_000, 2**20
BATCH_RECORDS, BATCH_CHARACTERS = 200, 2**18
Job = dict[str, Any]


def serve(connection: socket, job: Job) -> None:
    """Runs the job, and sends how it ended. The client may be gone by then."""
    with suppress(OSError, EOFError):
        kind, content = do_job(connection, job)
        messages.send(connection, kind, content)


def do_job(connection: socket, job: Job) -> tuple[bytes, bytes]:
    try:
        with translation.override(job["language"]):
            for content in READER_TASKS[job["task"]](PartSource(connection, job)):
                messages.send(connection, messages.RESULT, content)
    except UnreadableFile as error:
        return messages.REFUSED, show_undecodable(str(error)).encode()
    except (MemoryError, RecursionError):
        return messages.REFUSED, b""
    except (OSError, EOFError):
        raise
    # Catches whatever a parser raises. The client shows it to the user.
    except Exception as error:
        return messages.FAILED, f"{type(error).__name__}: {error}".encode(errors="replace")
    return messages.END, b""


class PartSource:
    """The file. Each part is requested when it is needed."""

    def __init__(self, connection: socket, job: Job) -> None:
        self.connection, self.encoding = connection, job["encoding"]
        self.name, self.format = job["name"], job["format"]
        self.stream = open_chunks(job["size"], job["chunk_bytes"], self.read_chunk)

    def ask(self, kind: bytes, number: int) -> bytes:
        messages.send(self.connection, kind, str(number).encode())
        return messages.receive(self.connection)[1]

    def read_chunk(self, number: int) -> bytes:
        return self.ask(messages.NEED_CHUNK, number)

    def iter_reasons(self) -> Iterator[tuple[int, str]]:
        position = 0
        while rows := json.loads(self.ask(messages.NEED_REASONS, position)):
            yield from rows
            position = rows[-1][0]

    def read_table(self) -> tuple[Format, Table]:
        """Raises UnreadableFile."""
        format = FORMATS[self.format] if self.format else find_format(self.stream, self.name)
        table = format.read(self.stream, self.encoding)
        require_storable_columns(table)
        return format, table


def require_storable_columns(table: Table) -> None:
    """Raises UnreadableFile if the rules, which contain the names of columns, could not be stored."""
    if any("\0" in column for column in table.columns):
        raise UnreadableFile(_("The name of a column has a character that cannot be stored."))
    if len(table.columns) > MAX_COLUMNS:
        raise UnreadableFile(_("The file has more than %(count)s columns.") % {"count": format_count(MAX_COLUMNS)})
    if sum(map(len, table.columns)) > MAX_COLUMN_CHARACTERS:
        raise UnreadableFile(_("The names of the columns are too long."))


def send_preview(source: PartSource) -> Iterator[bytes]:
    format, table = source.read_table()
    records = list(islice(table.records, SHOWN_RECORDS))
    if not records:
        raise UnreadableFile(
            _("No record was found in the file. It was read as %(kind)s.") % {"kind": table.description}
        )
    is_offered = table.warning and format.encodings == TEXT_ENCODINGS and not source.encoding
    proposed = propose_encodings(source.stream) if is_offered else []
    head = {
        "format": format.name,
        "columns": [*table.columns],
        "description": table.description,
        "warning": " ".join([table.warning, *describe_encodings(proposed)]),
        "proposed": proposed,
        "notes": [*table.notes, *describe_without_isbn(table.columns, chain(records, table.records))],
        "rows": [[show_cell(record.values.get(column)) for column in table.columns] for record in records],
    }
    yield json.dumps({**head, "left_out": show_left_out(table)}).encode()


def show_left_out(table: Table) -> str:
    return show_storable(describe_left_out(table.left_out))


def describe_encodings(names: Sequence[str]) -> list[str]:
    sentence = _("The file may be in %(encodings)s.")
    return [sentence % {"encodings": ", ".join(ENCODINGS[name].name for name in names)}] if names else []


def describe_without_isbn(columns: Sequence[str], records: Iterator[Record]) -> list[str]:
    """Returns a note about records without an ISBN, in columns with a usual name."""
    sources = list_sources(guess_mapping(columns), is_exact=False).get("isbn", [])
    count, without = 0, 0
    # The check reports damage.
    with suppress(UnreadableFile):
        for record in islice(records, COUNTED_RECORDS):
            count += 1
            without += not sources or (not record.problem and has_no_isbn(read_field(record.values, sources)[1][0]))
    sentence = ngettext(
        "%(without)s of the first %(count)s records has no ISBN. It can be left out, or use its number.",
        "%(without)s of the first %(count)s records have no ISBN. They can be left out, or use their numbers.",
        without,
    )
    return [sentence % {"without": format_count(without), "count": format_count(count)}] if without else []


def show_cell(value: Any) -> str:
    """Returns the beginning of a text, in a form that every database can store."""
    return "" if value is None else show_storable(str(value)[:MAX_SHOWN_TEXT])


def send_count(source: PartSource) -> Iterator[bytes]:
    _format, table = source.read_table()
    count = sum(1 for _record in table.records)
    if count > MAX_RECORDS:
        raise UnreadableFile(_("The file has more than %(count)s records.") % {"count": format_count(MAX_RECORDS)})
    yield json.dumps({"count": count, "left_out": show_left_out(table)}).encode()


def read_records(source: PartSource) -> Iterator[bytes]:
    _format, table = source.read_table()
    batch: list[Record] = []
    characters = 0
    for record in table.records:
        length = sum(len(name) + measure(value) for name, value in record.values.items())
        if length > MAX_RECORD_CHARACTERS:
            record, length = reject_long_record(record), 0
        batch.append(record)
        characters += length
        if len(batch) == BATCH_RECORDS or characters > BATCH_CHARACTERS:
            yield messages.encode_records(batch)
            batch, characters = [], 0
    yield messages.encode_records(batch)


def measure(value: Any) -> int:
    """Returns the approximate number of characters of the value in a message."""
    if isinstance(value, str):
        return len(value)
    return len(json.dumps(value)) if isinstance(value, dict | list) else 0


def reject_long_record(record: Record) -> Record:
    limit = {"count": format_count(MAX_RECORD_CHARACTERS)}
    return record._replace(values={}, problem=name_field("record", _("It has more than %(count)s characters.") % limit))


def write_rejected(source: PartSource) -> Iterator[bytes]:
    """Yields the name of the format, then the parts of a file with the rejected records, in order."""
    format, table = source.read_table()
    name = format.name if format.name in REJECTED_WRITERS else "csv"
    yield name.encode()
    yield from REJECTED_WRITERS[name](table, iter_rejected(source, table))


def iter_rejected(source: PartSource, table: Table) -> Iterator[tuple[Record, str]]:
    records = enumerate(table.records, 1)
    for wanted, reason in source.iter_reasons():
        for position, record in records:
            if position == wanted:
                yield record, reason
                break


READER_TASKS: dict[str, Callable[[PartSource], Iterator[bytes]]] = {
    "head": send_preview,
    "count": send_count,
    "records": read_records,
    "rejected": write_rejected,
}
