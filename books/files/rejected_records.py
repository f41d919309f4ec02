"""Writes the rejected records of an uploaded file, in the file's own format."""

from collections.abc import Generator, Iterator, Sequence
from itertools import chain

from django.utils.translation import gettext as _

from books.files.corrections import load_cells
from books.files.formats.records import name_field
from books.files.import_tasks import get_check_id, read_parameters
from books.files.matching import REJECTED_VERDICTS
from books.files.reader import client
from books.files.uploads import build_source
from books.models import ImportFile, ImportFinding, Operation

REASONS_OF_A_PAGE = 1_000


def iter_rejected_file(file: ImportFile, operation: Operation) -> Generator[bytes]:
    """Yields the name of the format, then the parts of a file with the refused and doubtful records of an operation, in
    order.

    Raises UnreadableFile.
    """
    parameters = read_parameters(operation)
    source = build_source(file, parameters.encoding, format=parameters.rules.format)
    return client.iter_rejected_parts(source, iter_reasons(file, operation))


def iter_rejected_rows(file: ImportFile, operation: Operation) -> Iterator[tuple[int, int, str]]:
    """Yields the positions, lines and reasons of these records."""
    return chain.from_iterable(iter_rejected_pages(file, operation))


def iter_rejected_pages(file: ImportFile, operation: Operation) -> Iterator[Sequence[tuple[int, int, str]]]:
    findings = ImportFinding.objects.filter(file=file, operation_id=operation.pk, kind__in=REJECTED_VERDICTS)
    rows, position = findings.order_by("position").values_list("position", "line", "reason"), 0
    while page := list(rows.filter(position__gt=position)[:REASONS_OF_A_PAGE]):
        yield page
        position = page[-1][0]


def iter_reasons(file: ImportFile, operation: Operation) -> Iterator[tuple[int, str]]:
    """Yields their positions and reasons, with what the user corrected in the page."""
    for rows in iter_rejected_pages(file, operation):
        cells = load_cells(file, get_check_id(operation), [position for position, _line, _reason in rows])
        corrected: dict[int, list[str]] = {}
        for (row, field), value in cells.items():
            if value is not None:
                corrected.setdefault(row, []).append(name_field(field, f"“{value}”"))
        for row, _line, reason in rows:
            # The record itself is written as it is in the file.
            names = {"reason": reason, "names": ", ".join(corrected.get(row, []))}
            yield row, _("%(reason)s Corrected in the page: %(names)s.") % names if row in corrected else reason
