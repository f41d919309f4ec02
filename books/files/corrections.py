"""Corrections of cells that a librarian enters on the page of a check. The file itself does not change.

A check stores the cells that its errors are about. The next check uses the corrected values, and an import uses the
values of the check that was confirmed; after that nobody can change them.
"""

from collections.abc import Collection, Mapping, Sequence

from django.utils.translation import gettext_noop

from books.book_fields import FIELDS, MAX_LENGTHS
from books.files.matching import REJECTED_VERDICTS, Decision
from books.models import ImportCorrection, ImportFile
from library_site.db.texts import make_storable
from library_site.http.api_errors import APIError

# Users fix more errors faster in a spreadsheet. Each check loads all corrections when it starts.
MAX_ASKED_CELLS = MAX_CORRECTED_CELLS = 5_000
MAX_CORRECTION_LENGTH = max(MAX_LENGTHS.values())
# The field of a record, identified by its position.
Cell = tuple[int, str]


class TooManyCorrections(APIError):
    """There are too many corrections. It is better to correct the file itself."""

    status = 409
    message = gettext_noop("No more cells of one file can be corrected here. Mend the others in the file itself.")


class TooLongCorrection(APIError):
    """No field of a book is that long."""

    status = 422
    message = gettext_noop("A correction is too long.")


def list_correctable(decision: Decision) -> list[str]:
    """Returns the fields that the reason of a rejected record is about; none if the record cannot be read."""
    if decision.verdict not in REJECTED_VERDICTS or decision.record.raw.problem:
        return []
    return [field for field in FIELDS if field in decision.members]


def ask_for_corrections(file: ImportFile, check_id: int, decisions: Sequence[Decision]) -> None:
    """Stores the cells that the user can correct on the page of the check, for the first rejected records."""
    cells = [(decision.record.position, field) for decision in decisions for field in list_correctable(decision)]
    asked = ImportCorrection.objects.filter(file=file, operation_id=check_id).count() if cells else 0
    rows = [build_correction(file, check_id, cell) for cell in cells[: max(0, MAX_ASKED_CELLS - asked)]]
    # Cells that were corrected but are still wrong are already stored.
    ImportCorrection.objects.bulk_create(rows, ignore_conflicts=True)


def build_correction(file: ImportFile, check_id: int, cell: Cell, value: str | None = None) -> ImportCorrection:
    position, field = cell
    return ImportCorrection(file=file, operation_id=check_id, position=position, member=field, value=value)


def load_corrections(file: ImportFile, check_id: int) -> dict[int, dict[str, str]]:
    """Returns the corrected values of the check, by record position and field."""
    rows = ImportCorrection.objects.filter(file=file, operation_id=check_id, value__isnull=False)
    corrections: dict[int, dict[str, str]] = {}
    for position, field, value in rows.values_list("position", "member", "value"):
        corrections.setdefault(position, {})[field] = value or ""
    return corrections


def load_cells(file: ImportFile, check_id: int, positions: Collection[int]) -> dict[Cell, str | None]:
    """Returns the cells of these records that can be corrected, with the corrections so far."""
    rows = ImportCorrection.objects.filter(file=file, operation_id=check_id, position__in=positions)
    return {(position, field): value for position, field, value in rows.values_list("position", "member", "value")}


def count_corrections(file: ImportFile, check_id: int) -> int:
    return ImportCorrection.objects.filter(file=file, operation_id=check_id, value__isnull=False).count()


def find_changes(file: ImportFile, check_id: int, texts: Mapping[Cell, str]) -> dict[Cell, str | None]:
    """Returns the corrections to store. An empty text removes one. Raises TooLongCorrection."""
    if any(len(text) > MAX_CORRECTION_LENGTH for text in texts.values()):
        raise TooLongCorrection
    cells = load_cells(file, check_id, {position for position, _field in texts})
    values = {cell: make_storable(text).strip() or None for cell, text in texts.items() if cell in cells}
    return {cell: value for cell, value in values.items() if value != cells[cell]}


def store_changes(file: ImportFile, check_id: int, changes: Mapping[Cell, str | None]) -> None:
    """Stores corrections in the caller's transaction. Raises TooManyCorrections."""
    ImportCorrection.objects.bulk_create(
        [build_correction(file, check_id, cell, value) for cell, value in changes.items()],
        update_conflicts=True,
        unique_fields=["file", "operation_id", "position", "member"],
        update_fields=["value"],
    )
    if count_corrections(file, check_id) > MAX_CORRECTED_CELLS:
        raise TooManyCorrections


def pass_corrections_on(file: ImportFile, former_id: int | None, check_id: int) -> None:
    """Copies the corrections of a check to the next one, in the transaction that starts it."""
    former = load_corrections(file, former_id) if former_id else {}
    rows = [
        build_correction(file, check_id, (position, field), value)
        for position, values in former.items()
        for field, value in values.items()
    ]
    ImportCorrection.objects.bulk_create(rows)
    ImportCorrection.objects.filter(file=file).exclude(operation_id=check_id).delete()
