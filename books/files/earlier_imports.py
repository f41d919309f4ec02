"""Which records of a file its earlier imports have done. A later check and import decide only about the others."""

from collections.abc import Iterable, Iterator, Sequence

from books.files.matching import REJECTED_VERDICTS
from books.files.parsing import ParsedRecord
from books.models import ImportFinding, Operation

POSITIONS_OF_A_QUERY = 1_000


class EarlierImport:
    """An import, which has done the records that it reached and did not reject."""

    def __init__(self, file_id: int, operation: Operation) -> None:
        self.last_position = operation.cursor or 0
        self.rejected = iter_rejected_positions(file_id, operation.pk)
        self.next_rejected = next(self.rejected, None)

    def has_done(self, position: int) -> bool:
        """Takes the positions of the file in their order."""
        while self.next_rejected is not None and self.next_rejected < position:
            self.next_rejected = next(self.rejected, None)
        return position <= self.last_position and position != self.next_rejected


def mark_done(records: Iterable[ParsedRecord], file_id: int, import_ids: Sequence[int]) -> Iterator[ParsedRecord]:
    """Marks the records that one of these imports has done."""
    imports = [EarlierImport(file_id, operation) for operation in Operation.objects.filter(pk__in=import_ids)]
    for record in records:
        is_done = any(earlier.has_done(record.position) for earlier in imports)
        yield record._replace(is_done=True) if is_done else record


def iter_rejected_positions(file_id: int, operation_id: int) -> Iterator[int]:
    """Yields the positions of the records that the import rejected."""
    findings = ImportFinding.objects.filter(file=file_id, operation_id=operation_id, kind__in=REJECTED_VERDICTS)
    rows = findings.order_by("position").values_list("position", flat=True)
    position = 0
    while positions := list(rows.filter(position__gt=position)[:POSITIONS_OF_A_QUERY]):
        yield from positions
        position = positions[-1]
