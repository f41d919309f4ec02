"""Writes the rejected records of an uploaded file, in the file's own format."""

from collections.abc import Generator, Iterator, Sequence
from functools import partial

from django.utils.translation import gettext as _

from books.files.corrections import load_cells
from books.files.formats.records import name_field
from books.files.import_tasks import get_check_id, read_parameters
from books.files.matching import REJECTED_VERDICTS
from books.files.sandbox import client
from books.files.uploads import build_source
from books.models import ImportFile, ImportFinding, Operation

REASONS_OF_A_PAGE = 1_000


def iter_rejected_file(file: ImportFile, operation: Operation) -> Generator[bytes]:
    """Yields the name of the format, then the parts of a file with the refused and doubtful records of an operation, in
    order.

    Raises UnreadableFile.
    """
    list_reasons = partial(list_next_reasons, file, operation)
    parameters = read_parameters(operation)
    source = build_source(file, parameters.encoding, format=parameters.rules.format, list_reasons=list_reasons)
    return client.iter_rejected_parts(source)


def iter_rejected_rows(file: ImportFile, operation: Operation) -> Iterator[tuple[int, int, str]]:
    """Yields the positions, lines and reasons of these records."""
    position = 0
    while rows := list_rejected(file, operation, position):
        yield from rows
        position = rows[-1][0]


def list_rejected(file: ImportFile, operation: Operation, position: int) -> Sequence[tuple[int, int, str]]:
    findings = ImportFinding.objects.filter(
        file=file, operation_id=operation.pk, kind__in=REJECTED_VERDICTS, position__gt=position
    )
    return list(findings.order_by("position").values_list("position", "line", "reason")[:REASONS_OF_A_PAGE])


def list_next_reasons(file: ImportFile, operation: Operation, position: int) -> Sequence[tuple[int, str]]:
    """Returns the positions and reasons of the next rejected records after this position."""
    rows = list_rejected(file, operation, position)
    cells = load_cells(file, get_check_id(operation), [position for position, _line, _reason in rows])
    corrected: dict[int, list[str]] = {}
    for (row, field), value in cells.items():
        if value is not None:
            corrected.setdefault(row, []).append(name_field(field, f"“{value}”"))
    return [(row, describe_corrected(reason, corrected.get(row, []))) for row, _line, reason in rows]


def describe_corrected(reason: str, corrected: Sequence[str]) -> str:
    """Adds the user's corrections to a reason, because the record itself is written as it is in the file."""
    if not corrected:
        return reason
    return _("%(reason)s Corrected in the page: %(names)s.") % {"reason": reason, "names": ", ".join(corrected)}
