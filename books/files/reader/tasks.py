"""What the command does with a file: each task yields its results."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import IO, Any, BinaryIO

from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from books.files.columns.cells import has_no_isbn, list_sources, read_field
from books.files.columns.tables import guess_mapping
from books.files.formats.encodings import ENCODINGS, TEXT_ENCODINGS, propose_encodings, show_storable, show_undecodable
from books.files.formats.records import (
    MAX_RECORD_CHARACTERS,
    MAX_SHOWN_TEXT,
    NumberText,
    Record,
    Table,
    UnreadableFile,
    describe_left_out,
    describe_too_long,
    format_count,
    name_field,
)
from books.files.formats.registry import FORMATS, REJECTED_WRITERS, Format, find_format

# The records that a preview shows, and those of which it counts how many have no ISBN.
SHOWN_RECORDS, COUNTED_RECORDS = 5, 10_000
# Columns are stored and shown, so their number and the total length of their names are limited.
MAX_COLUMNS, MAX_COLUMN_CHARACTERS = 1_000, 100_000
# The limit of an operation.
MAX_RECORDS = 10_000_000
Job = dict[str, Any]


def write_results(job: Job, stream: BinaryIO, output: IO[bytes]) -> None:
    """Writes a line for the start, each result, and the end, which also says why a file cannot be read."""
    output.write(encode_line("started"))
    output.flush()
    try:
        with translation.override(job["language"]):
            for result in READER_TASKS[job["task"]](job, stream):
                output.write(encode_line("result", result))
                if isinstance(result, int):
                    # A sign of life does not wait for others.
                    output.flush()
        line = encode_line("end")
    except UnreadableFile as error:
        line = encode_line("refused", show_undecodable(str(error)))
    except (MemoryError, RecursionError):
        line = encode_line("refused")
    # Catches whatever a parser raises. The client shows it to the user.
    except Exception as error:
        line = encode_line("failed", f"{type(error).__name__}: {error}")
    output.write(line)


def encode_line(kind: str, value: Any = "") -> bytes:
    """Python's own JSON module keeps lone surrogates and long integers."""
    return b"%b\n" % json.dumps([kind, value]).encode()


def read_table(job: Job, stream: BinaryIO) -> tuple[Format, Table]:
    """Raises UnreadableFile."""
    format = FORMATS[job["format"]] if job["format"] else find_format(stream, job["name"])
    table = format.read(stream, job["encoding"])
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


def read_preview(job: Job, stream: BinaryIO) -> Iterator[Any]:
    format, table = read_table(job, stream)
    records = list(islice(table.records, SHOWN_RECORDS))
    if not records:
        raise UnreadableFile(
            _("No record was found in the file. It was read as %(kind)s.") % {"kind": table.description}
        )
    is_offered = table.warning and format.encodings == TEXT_ENCODINGS and not job["encoding"]
    proposed = propose_encodings(stream) if is_offered else []
    names = ", ".join(ENCODINGS[name].name for name in proposed)
    advice = [_("The file may be in %(encodings)s.") % {"encodings": names}] if proposed else []
    yield {
        "format": format.name,
        "columns": [*table.columns],
        "description": table.description,
        "warning": " ".join([table.warning, *advice]),
        "proposed": proposed,
        "notes": [*table.notes, *describe_without_isbn(table.columns, chain(records, table.records))],
        "rows": [[show_cell(record.values.get(column)) for column in table.columns] for record in records],
        # Last, because it counts while records are read.
        "left_out": show_left_out(table),
    }


def show_left_out(table: Table) -> str:
    return show_storable(describe_left_out(table.left_out))


def describe_without_isbn(columns: Sequence[str], records: Iterator[Record]) -> list[str]:
    """Returns a note about records without an ISBN, in columns with a usual name."""
    sources = list_sources(guess_mapping(columns), is_exact=False).get("isbn", [])
    count, without = 0, 0
    # The check reports damage.
    with suppress(UnreadableFile):
        for record in islice(records, COUNTED_RECORDS):
            count += 1
            without += not sources or (
                not record.problem and has_no_isbn(read_field("isbn", record.values, sources)[1][0])
            )
    sentence = ngettext(
        "%(without)s of the first %(count)s records has no ISBN. It can be left out, or use its number.",
        "%(without)s of the first %(count)s records have no ISBN. They can be left out, or use their numbers.",
        without,
    )
    return [sentence % {"without": format_count(without), "count": format_count(count)}] if without else []


def show_cell(value: Any) -> str:
    """Returns the beginning of a text, in a form that every database can store."""
    return "" if value is None else show_storable(str(value)[:MAX_SHOWN_TEXT])


def count_records(job: Job, stream: BinaryIO) -> Iterator[Any]:
    """Yields the number so far now and then: a command whose client is gone ends when it writes."""
    _format, table = read_table(job, stream)
    number = 0
    for number, _record in enumerate(table.records, 1):
        if number > MAX_RECORDS:
            limit = {"count": format_count(MAX_RECORDS)}
            raise UnreadableFile(_("The file has more than %(count)s records.") % limit)
        if number % COUNTED_RECORDS == 0:
            yield number
    yield number, show_left_out(table)


def read_records(job: Job, stream: BinaryIO) -> Iterator[Any]:
    """Yields the records without their raw form."""
    _format, table = read_table(job, stream)
    for record in table.records:
        if sum(len(name) + measure(value) for name, value in record.values.items()) > MAX_RECORD_CHARACTERS:
            record = record._replace(values={}, problem=name_field("record", describe_too_long(MAX_RECORD_CHARACTERS)))
        numbers = [name for name, value in record.values.items() if type(value) is NumberText]
        yield record.line, record.values, numbers, record.problem, record.warnings, record.number


def measure(value: Any) -> int:
    """Returns the approximate number of characters of a value in JSON."""
    if isinstance(value, str):
        return len(value)
    return len(json.dumps(value)) if isinstance(value, dict | list) else 0


def write_rejected(job: Job, stream: BinaryIO) -> Iterator[Any]:
    """Yields the name of the format, then the parts of a file with the rejected records, in order. Bytes that are not
    UTF-8 become surrogates.
    """
    format, table = read_table(job, stream)
    name = format.name if format.name in REJECTED_WRITERS else "csv"
    yield name
    for content in REJECTED_WRITERS[name](table, iter_rejected(job, table)):
        yield content.decode("utf-8", "surrogateescape")


def iter_rejected(job: Job, table: Table) -> Iterator[tuple[Record, str]]:
    records = enumerate(table.records, 1)
    [reasons] = job["files"]
    with open(reasons, closefd=False) as lines:
        for wanted, reason in map(json.loads, lines):
            yield next(record for position, record in records if position == wanted), reason


READER_TASKS: dict[str, Callable[[Job, BinaryIO], Iterator[Any]]] = {
    "preview": read_preview,
    "count": count_records,
    "records": read_records,
    "rejected": write_rejected,
}
