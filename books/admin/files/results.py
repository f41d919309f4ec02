"""The table of a check or an import: the result for each record, and the cells that can be corrected."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from books.admin.descriptions import format_value
from books.admin.files.forms import FIELD_LABELS
from books.admin.list.settings import TEXT_COLUMNS
from books.book.fields import FIELDS, MAX_LENGTHS
from books.files.corrections import MAX_CORRECTION_LENGTH, Cell, load_cells
from books.files.import_tasks import MAX_SHOWN_RECORDS, get_check_id, get_counts, get_reasons, read_parameters
from books.files.matching import REJECTED_VERDICTS, Verdict
from books.files.parsing import ACCEPTED
from books.files.reasons import group_reason, list_groups, name_place
from books.models import ImportFile, ImportFinding, Operation
from library_site.db.integers import parse_integer

# The same columns as in the list of books. The other fields follow.
COLUMNS = (*TEXT_COLUMNS, "isbn")
OTHER_FIELDS = tuple(name for name in FIELDS if name not in COLUMNS)
# To find records with one reason, at most so many are read, so that the page stays fast.
MAX_SEARCHED_RECORDS = 20_000
# The page opens with the kind of records that needs attention.
OPENED_FIRST = (Verdict.REFUSED, Verdict.DOUBTFUL)
FIELD_PREFIX = "cell"
TITLES = {
    Verdict.NEW: gettext_lazy("New"),
    Verdict.CHANGED: gettext_lazy("Changed"),
    Verdict.SAME: gettext_lazy("The same"),
    Verdict.LEFT: gettext_lazy("Left as they are"),
    Verdict.WITHOUT_ISBN: gettext_lazy("Without ISBN"),
    Verdict.DOUBTFUL: gettext_lazy("With warnings"),
    Verdict.REFUSED: gettext_lazy("With errors"),
}


class ReportLink(NamedTuple):
    """The records of one kind, or with one reason: how many the file has, and the page that shows only these."""

    text: str
    total: int
    address: str
    is_shown: bool


class RowCell(NamedTuple):
    """A cell of a record. With a form field the user can correct it: `text` is the old value, `value` the new one."""

    member: str
    label: str
    text: str
    before: str = ""
    field: str = ""
    value: str = ""
    is_corrected: bool = False
    max_length: int = MAX_CORRECTION_LENGTH


class ReportRow(NamedTuple):
    position: int
    place: str
    book_id: int | None
    reason: str
    # The name of the button that accepts the warnings; empty if there is none.
    accept_field: str
    is_accepted: bool
    cells: Sequence[RowCell]
    # Cells to correct whose fields have no column in the table.
    others: Sequence[RowCell]


class Report(NamedTuple):
    """`next_address` links to the next rows. Only the first of the records that are not rejected are stored."""

    sections: Sequence[ReportLink]
    groups: Sequence[ReportLink]
    rows: Sequence[ReportRow]
    next_address: str
    is_cut: bool


def build_report(file: ImportFile, operation: Operation, query: QueryDict) -> Report:
    """Returns the rows for the query parameters `kind`, `reason` and `after` (a position)."""
    counts = get_counts(operation)
    kinds = [kind for kind in Verdict if counts.get(kind)]
    chosen = [kind for kind in kinds if kind == query.get("kind", "")]
    kind = next((kind for kind in (*chosen, *OPENED_FIRST, *kinds) if kind in kinds), None)
    if kind is None:
        return Report((), (), (), "", is_cut=False)
    groups = list_groups(get_reasons(operation, kind))
    reason = query.get("reason", "")
    reason = reason if reason in [group for _count, group in groups] else ""
    after = parse_integer(query.get("after", "")) or 0
    findings = ImportFinding.objects.filter(file=file, operation_id=operation.pk, kind=kind)
    shown, next_after = find_page(findings, reason, max(0, min(after, 2**62)))
    return Report(
        [
            ReportLink(str(TITLES[name]), counts[name], build_address(kind=name), is_shown=name == kind)
            for name in kinds
        ],
        [
            # The reasons that have no group of their own are not shown alone.
            ReportLink(
                group,
                count,
                "" if group == _("other reasons") else build_address(kind=kind, reason=group),
                is_shown=group == reason,
            )
            for count, group in groups
        ],
        list(build_rows(file, operation, shown)),
        build_address(kind=kind, reason=reason, after=next_after) if next_after else "",
        kind not in REJECTED_VERDICTS and counts[kind] > len(shown),
    )


def build_address(**query: Any) -> str:
    return f"?{urlencode({name: value for name, value in query.items() if value})}"


def find_page(findings: QuerySet[ImportFinding], reason: str, after: int) -> tuple[list[ImportFinding], int]:
    """Returns the findings after a position, and the position for the next page, 0 if there is none."""
    rows = findings.filter(position__gt=after).order_by("position")
    if not reason:
        shown = list(rows[: MAX_SHOWN_RECORDS + 1])
        has_more = len(shown) > MAX_SHOWN_RECORDS
        return shown[:MAX_SHOWN_RECORDS], shown[MAX_SHOWN_RECORDS - 1].position if has_more else 0
    positions: list[int] = []
    searched = list(rows.values_list("position", "reason")[:MAX_SEARCHED_RECORDS])
    for position, text in searched:
        if group_reason(text) == reason:
            positions.append(position)
        if len(positions) > MAX_SHOWN_RECORDS:
            return list(rows.filter(position__in=positions[:MAX_SHOWN_RECORDS])), positions[MAX_SHOWN_RECORDS - 1]
    return list(rows.filter(position__in=positions)), searched[-1][0] if len(searched) == MAX_SEARCHED_RECORDS else 0


def build_rows(file: ImportFile, operation: Operation, findings: Sequence[ImportFinding]) -> Iterator[ReportRow]:
    positions = [finding.position for finding in findings]
    corrections = load_cells(file, get_check_id(operation), positions)
    format_name = read_parameters(operation).rules.format
    for finding in findings:
        cells = list(build_cells(finding, corrections))
        accepted = (finding.position, ACCEPTED)
        may_accept = finding.kind == Verdict.DOUBTFUL and accepted in corrections
        yield ReportRow(
            finding.position,
            name_place(format_name, finding.line),
            finding.book_id,
            _("The library has this book, and the rules leave it.") if finding.kind == Verdict.LEFT else finding.reason,
            name_input(finding.position, ACCEPTED) if may_accept else "",
            corrections.get(accepted) is not None,
            cells[: len(COLUMNS)],
            [cell for cell in cells[len(COLUMNS) :] if cell.field or cell.before],
        )


def name_input(position: int, field_name: str) -> str:
    return f"{FIELD_PREFIX}-{position}-{field_name}"


def build_cells(finding: ImportFinding, corrections: Mapping[Cell, str | None]) -> Iterator[RowCell]:
    """Yields the cells of the table's columns, then the other cells."""
    after, before = finding.after or {}, finding.before or {}
    for field_name in (*COLUMNS, *OTHER_FIELDS):
        cell = (finding.position, field_name)
        text, former = format_text(after.get(field_name)), format_text(before.get(field_name))
        if finding.kind == Verdict.LEFT and field_name in before:
            # The value of the library stays, and that of the file is dropped.
            text, former = former, text
        is_field = cell in corrections and finding.kind in REJECTED_VERDICTS
        yield RowCell(
            field_name,
            str(FIELD_LABELS[field_name]),
            text,
            former if finding.book_id and field_name in before and former != text else "",
            name_input(finding.position, field_name) if is_field else "",
            corrections.get(cell) or "",
            corrections.get(cell) is not None,
            MAX_LENGTHS.get(field_name, MAX_CORRECTION_LENGTH),
        )


def format_text(value: Any) -> str:
    return "" if value is None else format_value(value)


def read_fields(form: QueryDict) -> dict[Cell, str]:
    texts: dict[Cell, str] = {}
    for name, text in form.items():
        prefix, _dash, place = name.partition("-")
        position, _dash, field_name = place.partition("-")
        number = parse_integer(position)
        if prefix == FIELD_PREFIX and number is not None and 0 < number < 2**62:
            texts[number, field_name] = str(text)
    return texts
