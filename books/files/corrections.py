"""Corrections of cells that a librarian enters on the page of a check or of an import. The file itself does not change.

A check and an import store the cells that errors and warnings are about. A correction is saved without a check; the
next check uses it, and an import uses the corrections of its check. In the same way a librarian accepts the warnings of
a record, and the next import of the same check takes it.
"""

from collections.abc import Collection, Mapping, Sequence

from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from books.book.fields import FIELDS, MAX_LENGTHS
from books.files.matching import REJECTED_VERDICTS, RecordVerdict, Verdict
from books.files.parsing import ACCEPTED
from books.models import ImportCorrection, ImportFile
from library_site.db.texts import make_storable
from library_site.http.api_errors import APIError

# Users fix more errors faster in a spreadsheet. Each check loads all corrections when it starts.
MAX_ASKED_CELLS = 5_000
MAX_CORRECTION_LENGTH = max(MAX_LENGTHS.values())
# Corrections that no check has used yet have this instead of the id of a check. An empty text takes a correction back.
UNCHECKED = 0
# The field of a record, identified by its position, or ACCEPTED.
Cell = tuple[int, str]


class TooLongCorrection(APIError):
    """No field of a book is that long."""

    status_code = 422
    default_detail = gettext_noop("A correction is too long.")


def list_correctable(verdict: RecordVerdict) -> list[str]:
    """Returns the fields that the reason of a rejected record is about; none if the record cannot be read.

    Warnings can also be accepted.
    """
    if verdict.name not in REJECTED_VERDICTS or verdict.record.raw.problem:
        return []
    fields = [field for field in FIELDS if field in verdict.fields]
    return [*fields, ACCEPTED] if verdict.name == Verdict.DOUBTFUL else fields


def ask_for_corrections(file: ImportFile, check_id: int, verdicts: Sequence[RecordVerdict]) -> None:
    """Stores the cells that the user can correct on the page of the check, for the first rejected records."""
    cells = [(verdict.record.position, field) for verdict in verdicts for field in list_correctable(verdict)]
    asked = ImportCorrection.objects.filter(file=file, operation_id=check_id).count() if cells else 0
    rows = build_rows(file, check_id, dict.fromkeys(cells[: max(0, MAX_ASKED_CELLS - asked)]))
    # Cells that were corrected but are still wrong are already stored.
    ImportCorrection.objects.bulk_create(rows, ignore_conflicts=True)


def build_rows(file: ImportFile, check_id: int, values: Mapping[Cell, str | None]) -> list[ImportCorrection]:
    return [
        ImportCorrection(file=file, operation_id=check_id, position=position, member=field, value=value)
        for (position, field), value in values.items()
    ]


def load_corrections(file: ImportFile, check_id: int) -> dict[int, dict[str, str]]:
    rows = ImportCorrection.objects.filter(file=file, operation_id=check_id, value__isnull=False)
    corrections: dict[int, dict[str, str]] = {}
    for position, field, value in rows.values_list("position", "member", "value"):
        corrections.setdefault(position, {})[field] = value or ""
    return corrections


def load_cells(file: ImportFile, check_id: int, positions: Collection[int]) -> dict[Cell, str | None]:
    """Returns the cells of these records that can be corrected, with the corrections so far."""
    rows = list_latest(file, check_id).filter(position__in=positions)
    return {(position, field): value or None for position, field, value in rows}


def list_latest(file: ImportFile, check_id: int) -> QuerySet[ImportCorrection, tuple[int, str, str | None]]:
    """Returns the positions, fields and texts of the cells. What was entered after the check comes last."""
    rows = ImportCorrection.objects.filter(file=file, operation_id__in=(check_id, UNCHECKED))
    return rows.order_by("-operation_id").values_list("position", "member", "value")


def count_corrections(file: ImportFile, check_id: int) -> int:
    """Counts the corrected cells of the check, and those that were corrected since."""
    rows = list_latest(file, check_id).filter(value__isnull=False).exclude(member=ACCEPTED)
    return rows.order_by().values("position", "member").distinct().count()


def count_unchecked(file: ImportFile) -> int:
    """Counts the cells that were corrected after the check."""
    return ImportCorrection.objects.filter(file=file, operation_id=UNCHECKED).exclude(member=ACCEPTED).count()


def list_accepted(file: ImportFile) -> QuerySet[ImportCorrection]:
    """Returns the records whose warnings were accepted after the check."""
    return ImportCorrection.objects.filter(file=file, operation_id=UNCHECKED, member=ACCEPTED).exclude(value="")


def correct_cells(file: ImportFile, check_id: int, texts: Mapping[Cell, str]) -> None:
    """Stores corrections for the next check in the caller's transaction. An empty text removes one. Raises
    TooLongCorrection.

    The warnings of a corrected record are no longer accepted, because it may get others.
    """
    if any(len(text) > MAX_CORRECTION_LENGTH for text in texts.values()):
        raise TooLongCorrection
    cells = load_cells(file, check_id, {position for position, _field in texts})
    values = {cell: make_storable(text).strip() for cell, text in texts.items() if cell in cells}
    changes = {cell: value for cell, value in values.items() if value != (cells[cell] or "")}
    corrected = {(position, ACCEPTED) for position, field in changes if field != ACCEPTED}
    store_values(file, UNCHECKED, {**changes, **{cell: "" for cell in corrected if cells.get(cell)}})


def store_values(file: ImportFile, check_id: int, values: Mapping[Cell, str | None]) -> None:
    ImportCorrection.objects.bulk_create(
        build_rows(file, check_id, values),
        update_conflicts=True,
        unique_fields=["file", "operation_id", "position", "member"],
        update_fields=["value"],
    )


def move_corrections(file: ImportFile, former_id: int | None, check_id: int) -> None:
    """Moves the corrections of a check, and those since, to the next one, in the transaction that starts it."""
    cells = {(position, field): value for position, field, value in list_latest(file, former_id or UNCHECKED)}
    ImportCorrection.objects.bulk_create(
        build_rows(file, check_id, {cell: text for cell, text in cells.items() if text})
    )
    ImportCorrection.objects.filter(file=file).exclude(operation_id=check_id).delete()


def move_accepted(file: ImportFile, check_id: int) -> None:
    """Adds the records whose warnings are accepted to the check, in the transaction that starts its import."""
    accepted = list_accepted(file)
    store_values(file, check_id, {(row.position, ACCEPTED): row.value for row in accepted})
    accepted.delete()


def forget_accepted(file: ImportFile) -> None:
    """Other rules can give other warnings, which nobody has accepted."""
    ImportCorrection.objects.filter(file=file, member=ACCEPTED).delete()
