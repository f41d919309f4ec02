"""The worker tasks that preview, check and import an uploaded file (`books.operations.tasks`)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, ClassVar

import msgspec
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from books.book.fields import FIELDS
from books.files.corrections import ask_for_corrections, load_corrections
from books.files.earlier_records import EarlierRecords
from books.files.formats.encodings import show_storable
from books.files.formats.records import MAX_SHOWN_TEXT, UnreadableFile
from books.files.matching import (
    REJECTED_VERDICTS,
    LoadBooks,
    RecordVerdict,
    Verdict,
    decide_records,
    read_books,
    write_verdicts,
)
from books.files.parsing import ImportRules, ParsedRecord, parse_records
from books.files.reader.client import FilePreview, StoredFile, iter_file_records, read_preview, read_size
from books.files.reasons import add_reasons
from books.files.uploads import build_source
from books.history.actors import ActorRef
from books.models import ImportFile, ImportFinding, Operation
from books.operations.tasks import (
    Batch,
    BatchCounts,
    OperationFailed,
    Plan,
    Sentences,
    Task,
    is_announced,
    register_operation_kind,
)
from books.writing.changes import lock_books
from library_site.jobs.leases import renew_lease

PREVIEW, CHECK, IMPORT = "import preview", "import check", "import"
# At most so many records with each verdict are shown. All rejected records are stored.
MAX_SHOWN_RECORDS = 100
# The number of records in a batch when a worker repeats verdicts to continue with a file.
REPEATED_BATCH = 500
WRITTEN_VERDICTS = (Verdict.NEW, Verdict.CHANGED)
UNCHANGED_VERDICTS = (Verdict.SAME, Verdict.LEFT, Verdict.WITHOUT_ISBN)
OTHER_SENTENCES: Sentences = {
    "numbered": ngettext_lazy(
        "%(count)s by the number of its record", "%(count)s by the number of their record", "number"
    ),
    "unchanged": ngettext_lazy(
        "%(count)s record that changes nothing", "%(count)s records that change nothing", "number"
    ),
    "refused": ngettext_lazy("%(count)s record not imported", "%(count)s records not imported", "number"),
}


class FileParameters(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parameters of a preview, a check or an import. `check` is the check whose corrections an import uses."""

    file: int
    encoding: str
    rules: ImportRules = ImportRules({})
    events: bool = True
    check: int = 0


class RecordTask(Task):
    """Decides about the records of a file, in their order: its cursor is the position of a record.

    Parameters and results belong to the operation, not to the file, because a file can be checked by other rules while
    a check is running. After a failure the worker creates another task, which reads from the cursor.
    """

    # The verdicts of the books that it changes.
    changed_verdicts: ClassVar[Sequence[Verdict]] = ()
    earlier: EarlierRecords
    records: Iterator[ParsedRecord] | None = None

    def plan(self, operation: Operation) -> Plan:
        """Reads the whole file. Raises OperationFailed."""
        with report_unreadable():
            count, left_out = read_size(open_source(operation))
        Operation.objects.filter(pk=operation.pk).update(result={"left_out": left_out})
        return Plan(count, 0, count)

    def read_batch(self, operation: Operation, limit: int) -> Batch:
        """Raises OperationFailed."""
        with report_unreadable():
            if self.records is None:
                self.records = self.open_records(operation)
            rest = (operation.last or 0) - (operation.cursor or 0)
            records = list(islice(self.records, min(limit, rest)))
            if not records:
                raise UnreadableFile(_("The file ends before its last record."))
        return Batch(records[-1].position, records)

    def open_records(self, operation: Operation) -> Iterator[ParsedRecord]:
        """Returns the records after the cursor. It decides about the earlier ones again, because later ones may repeat
        them.
        """
        parameters = read_parameters(operation)
        self.earlier = EarlierRecords(operation.pk if operation.kind == IMPORT else None)
        corrections = load_corrections(get_file(operation), get_check_id(operation))
        records = parse_records(iter_file_records(open_source(operation)), parameters.rules, corrections)
        earlier_records = islice(records, operation.cursor or 0)
        self.earlier.load_former()
        while batch := list(islice(earlier_records, REPEATED_BATCH)):
            self.decide(operation, batch)
            renew_lease(operation)
        return records

    def write_batch(self, operation: Operation, batch: Batch, actor: ActorRef, now: datetime) -> BatchCounts:
        verdicts = self.write(operation, batch.items, actor, now)
        counts = Counter(verdict.name for verdict in verdicts)
        file = get_file(operation)
        store_findings(file, operation, verdicts)
        ask_for_corrections(file, get_check_id(operation), verdicts)
        Operation.objects.filter(pk=operation.pk).update(result=add_counts(operation, verdicts))
        changed = sum(counts[name] for name in self.changed_verdicts)
        rejected = sum(counts[name] for name in REJECTED_VERDICTS)
        return BatchCounts(changed, len(verdicts) - changed - rejected, rejected)

    def write(
        self, operation: Operation, records: Sequence[ParsedRecord], actor: ActorRef, now: datetime
    ) -> list[RecordVerdict]:
        """A check writes nothing."""
        return self.decide(operation, records)

    def decide(
        self, operation: Operation, records: Sequence[ParsedRecord], load_books: LoadBooks = read_books
    ) -> list[RecordVerdict]:
        rules = read_parameters(operation).rules
        # The day is the same for all batches, also after midnight.
        return decide_records(records, rules, load_books, self.earlier, operation.created_at.date())

    @classmethod
    def read_numbers(cls, operation: Operation) -> dict[str, int | None]:
        """Counts added and changed books separately."""
        numbers, counts = super().read_numbers(operation), get_counts(operation)
        if not counts:
            return numbers
        written = {verdict.value: counts[verdict] for verdict in WRITTEN_VERDICTS}
        unchanged_count = sum(counts[verdict] for verdict in UNCHANGED_VERDICTS)
        return {**numbers, **written, "numbered": count_numbered(operation), "unchanged": unchanged_count}

    def require_complete(self, operation: Operation) -> None:
        """Checks that each record was decided once."""
        if (operation.changed or 0) + (operation.unchanged or 0) + (operation.refused or 0) != operation.matched:
            raise OperationFailed(_("Not each record of the file was read once."))


@register_operation_kind
class CheckTask(RecordTask):
    name = CHECK
    label = gettext_lazy("check of a file")
    is_listed = False
    sentences: ClassVar[Sentences] = {
        "new": ngettext_lazy("%(count)s book to add", "%(count)s books to add", "number"),
        "changed": ngettext_lazy("%(count)s book to change", "%(count)s books to change", "number"),
        **OTHER_SENTENCES,
    }


@register_operation_kind
class ImportTask(RecordTask):
    name = IMPORT
    label = gettext_lazy("import")
    title = ngettext_lazy("%(count)s book imported", "%(count)s books imported", "number")
    sentences: ClassVar[Sentences] = {
        "new": ngettext_lazy("%(count)s book added", "%(count)s books added", "number"),
        "changed": ngettext_lazy("%(count)s book changed", "%(count)s books changed", "number"),
        **OTHER_SENTENCES,
    }
    changed_verdicts = WRITTEN_VERDICTS

    def write(
        self, operation: Operation, records: Sequence[ParsedRecord], actor: ActorRef, now: datetime
    ) -> list[RecordVerdict]:
        return write_verdicts(self.decide(operation, records, lock_books), actor, now, is_announced(operation))


@register_operation_kind
class PreviewTask(Task):
    """Reads how the file is encoded, its columns and its first records, and stores them as the operation's result."""

    name = PREVIEW
    label = gettext_lazy("preview of a file")
    is_listed = False
    sentences: ClassVar[Sentences] = {}

    def plan(self, operation: Operation) -> Plan:
        return Plan(1, 0, 1)

    def read_batch(self, operation: Operation, limit: int) -> Batch:
        """Raises OperationFailed."""
        with report_unreadable():
            return Batch(1, [preview_file(open_source(operation))])

    def write_batch(self, operation: Operation, batch: Batch, actor: ActorRef, now: datetime) -> BatchCounts:
        [(preview, encoding)] = batch.items
        Operation.objects.filter(pk=operation.pk).update(result=msgspec.to_builtins(preview))
        ImportFile.objects.filter(preview_operation=operation).update(encoding=encoding)
        return BatchCounts(changed=0, unchanged=1)


def preview_file(source: StoredFile) -> tuple[FilePreview, str]:
    """Returns the preview and the encoding to read the file with, empty to keep the detected one.

    A text that is not UTF-8 from its first non-ASCII character is read in the likeliest encoding. A user may choose
    another one.
    """
    preview = read_preview(source)
    if not preview.proposed:
        return preview, source.encoding
    encoding = preview.proposed[0]
    other = read_preview(source._replace(encoding=encoding))
    return msgspec.structs.replace(other, notes=[preview.warning, *other.notes]), encoding


def find_preview(operation: Operation | None) -> FilePreview | None:
    """Returns the result of the preview, None before it is done."""
    return msgspec.convert(operation.result, FilePreview) if operation and operation.result else None


@contextmanager
def report_unreadable() -> Iterator[None]:
    try:
        yield
    except UnreadableFile as error:
        raise OperationFailed(str(error)) from error


def read_parameters(operation: Operation) -> FileParameters:
    return msgspec.convert(operation.parameters, FileParameters)


def get_file(operation: Operation) -> ImportFile:
    return ImportFile.objects.get(pk=read_parameters(operation).file)


def open_source(operation: Operation) -> StoredFile:
    """Returns the file of an operation. The lease is renewed while a reader works."""
    parameters = read_parameters(operation)
    options = {"format": parameters.rules.format, "keep_alive": partial(renew_lease, operation)}
    return build_source(get_file(operation), parameters.encoding, **options)


def get_check_id(operation: Operation) -> int:
    """Returns the id of the check for an import; for a check its own id."""
    return read_parameters(operation).check or operation.pk


def get_counts(operation: Operation) -> Counter[str]:
    """Returns the numbers of records so far, by verdict."""
    return Counter((operation.result or {}).get("counts", {}))


def add_counts(operation: Operation, verdicts: Sequence[RecordVerdict]) -> dict[str, Any]:
    counts = get_counts(operation) + Counter(str(verdict.name) for verdict in verdicts)
    reasons = {
        str(name): add_reasons(
            get_reasons(operation, name),
            # A file may contain texts that a database cannot store.
            [show_storable(verdict.reason) for verdict in verdicts if verdict.name == name],
        )
        for name in REJECTED_VERDICTS
    }
    written = (verdict for verdict in verdicts if verdict.name in WRITTEN_VERDICTS)
    numbered = count_numbered(operation) + sum(verdict.record.has_number for verdict in written)
    return {**(operation.result or {}), "counts": dict(counts), "reasons": reasons, "numbered": numbered}


def get_left_out(operation: Operation) -> str:
    """Returns the note about what of the file no record shows."""
    return str((operation.result or {}).get("left_out", ""))


def count_numbered(operation: Operation) -> int:
    """Returns how many books so far have the number of their record as isbn."""
    return int((operation.result or {}).get("numbered", 0))


def get_reasons(operation: Operation, verdict: str) -> Counter[str]:
    """Returns the numbers of reasons for one verdict so far, by group."""
    return Counter((operation.result or {}).get("reasons", {}).get(verdict, {}))


def store_findings(file: ImportFile, operation: Operation, verdicts: Sequence[RecordVerdict]) -> None:
    """Stores all rejected records, and of the others as many as are shown."""
    counts = get_counts(operation)
    findings = []
    for verdict in verdicts:
        counts[verdict.name] += 1
        if verdict.name in REJECTED_VERDICTS or counts[verdict.name] <= MAX_SHOWN_RECORDS:
            findings.append(build_finding(file, operation, verdict))
    ImportFinding.objects.bulk_create(findings)


def build_finding(file: ImportFile, operation: Operation, verdict: RecordVerdict) -> ImportFinding:
    record, book = verdict.record, verdict.book
    values = describe_values(verdict)
    return ImportFinding(
        file=file,
        operation_id=operation.pk,
        kind=verdict.name,
        position=record.position,
        line=record.raw.line,
        reason=show_storable(verdict.reason),
        book_id=book.id if book else None,
        before={name: getattr(book, name) for name in values if hasattr(book, name)} if book else None,
        after=values,
    )


def describe_values(verdict: RecordVerdict) -> dict[str, Any]:
    """Returns the values to show for a record. If it changes a book, these are the book's new values."""
    record, book = verdict.record, verdict.book
    if book and verdict.values:
        return {name: verdict.values.get(name, getattr(book, name)) for name in FIELDS}
    return dict(verdict.values or record.values) or describe_cells(record.cells or record.raw.values)


def describe_cells(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the cells to show for a record without valid values."""
    texts = {show_storable(str(name)): "" if value is None else str(value) for name, value in cells.items()}
    return {name: show_storable(text)[:MAX_SHOWN_TEXT] for name, text in texts.items()}
