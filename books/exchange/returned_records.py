"""Writes the records of an uploaded file that come back, in the format in which they came."""

from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

from books.exchange.formats.records import Record
from books.exchange.judging import RETURNED_KINDS
from books.exchange.uploads import read_table
from books.models import ImportFile, ImportFinding

PIECE_BYTES = 2**16
MAX_MEMORY_BYTES = 2**20


def iter_returned_file(file: ImportFile, operation_id: int) -> Iterator[bytes]:
    """Yields the parts of a file of the records that an operation found refused or doubtful, in order.

    Raises UnreadableFile.
    """
    format, table = read_table(file)
    # A workbook is complete only at its end, and may be large.
    with SpooledTemporaryFile(MAX_MEMORY_BYTES) as stream:
        refused_file = format.refused_file(cast("BinaryIO", stream), table)
        for record, reason in iter_returned(file, operation_id, table.records):
            refused_file.add(record, reason)
        refused_file.close()
        stream.seek(0)
        yield from iter(lambda: stream.read(PIECE_BYTES), b"")


def iter_returned(file: ImportFile, operation_id: int, records: Iterator[Record]) -> Iterator[tuple[Record, str]]:
    findings = ImportFinding.objects.filter(file=file, operation_id=operation_id, kind__in=RETURNED_KINDS)
    reasons = iter(findings.order_by("position").values_list("position", "reason").iterator(chunk_size=1_000))
    next_position, reason = next(reasons, (0, ""))
    for position, record in enumerate(records, 1):
        if position == next_position:
            yield record, reason
            next_position, reason = next(reasons, (0, ""))
        if not next_position:
            return
