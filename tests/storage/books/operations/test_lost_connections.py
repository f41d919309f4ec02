"""A model of operations: workers are killed and connections end at any statement, and what is left behind is that of a
run that nobody disturbs.
"""

import json
from contextlib import suppress
from random import Random
from threading import Event
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.functions import Now

from books.files import export_tasks, uploads
from books.files.export_tasks import EXPORT, iter_workbook
from books.files.import_tasks import CHECK, IMPORT
from books.models import Book, Change, ImportFile, Operation
from books.operations import worker
from books.operations.edits import Edit
from books.operations.lifecycle import cancel_operation
from library_site.jobs.worker import CONNECTION_ERRORS, call_reconnecting
from tests.support import book_audit
from tests.support.book_files import read_records
from tests.support.books_admin import create_book
from tests.support.connection_faults import ConnectionFaults, Killed, inject_faults
from tests.support.imports import store_file
from tests.support.operations import (
    begin_check,
    begin_deletion,
    begin_edit,
    begin_export,
    begin_import,
    begin_undo,
    count_items,
    create_head_librarian,
    list_problems,
    skip_delays,
)
from webhooks.models import Event as StoredEvent

pytestmark = pytest.mark.django_db(transaction=True)

MAX_FAULTS, MAX_ROUNDS = 5, 100
FAULT_CHANCE = 0.06
# Other faults on each database.
SEEDS = {"sqlite": 0, "postgresql": 1}
CHANGE_COLUMNS = ("book_id", "operation_id", "before", "version", "kind", "after")
FINDING_COLUMNS = ("kind", "position", "line", "reason", "after")
VARYING_FIELDS = {"id", "timestamp", "created_at", "updated_at"}
BOOK_COLUMNS = ("isbn", "title", "author", "year", "genre", "available", "version")
# Records that are new, change a book, leave it as it is, are doubtful and are refused.
RECORDS = """title,author,year,isbn,genre
New,A,1901,new-1,Prose
Old 1,A,1902,old-1,Verse
Old 2,A,1815,old-2,Prose
Wrong,A,MCM,wrong-1,Prose
New,A,1903,new-2,Prose
New,A,1904,978-0-14-143958-7,Prose
New,A,1904,9780141439587,Prose
Again,A,1905,new-1,Prose
Old 3,A,1815,old-3,Verse
New,A,1906,new-3,Verse
New,,1907,new-4,Prose
New,A,1908,new-5,Prose
"""


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "CHUNK_BYTES", 90)
    monkeypatch.setattr(export_tasks, "CHUNK_BYTES", 2_000)
    monkeypatch.setattr(worker, "PAUSES", {"sqlite": 0, "postgresql": 0})
    skip_delays(monkeypatch)


class Library:
    """Six books, and a head librarian who begins operations."""

    def __init__(self) -> None:
        self.actor = create_head_librarian()
        with transaction.atomic():
            for number in range(1, 7):
                genre = "Old Prose" if number % 2 else "Prose"
                create_book(title=f"Old {number}", author="A", year=1815, isbn=f"old-{number}", genre=genre)
            self.file = store_file(RECORDS.encode(), User.objects.get().pk, on_match="replace")

    def begin(self, kind: str) -> Operation:
        """Begins an operation of this kind."""
        match kind:
            case "edit":
                return begin_edit(self.actor, Edit({}, "genre", "Prose", ""))
            case "isbns":
                return begin_edit(self.actor, Edit({}, "isbn", "-", "."))
            case "delete":
                return begin_deletion(self.actor, title="old")
            case "undo":
                return begin_undo(Operation.objects.latest("pk"), self.actor)
            case "export":
                return begin_export(self.actor)
            case "import":
                return begin_import(self.actor, self.file)
        return begin_check(self.actor, self.file)

    def describe(self) -> dict[str, Any]:
        """Everything that the operations left behind. Books and operations are numbered: ids have gaps."""
        operations = Operation.objects.order_by("pk")
        ids = {pk: number for number, pk in enumerate(sorted({*Change.objects.values_list("book_id", flat=True)}))}
        numbers: dict[int | None, int] = {operation.pk: number for number, operation in enumerate(operations)}
        changes = Change.objects.order_by("book_id", "version")
        events = StoredEvent.objects.exclude(subject=None).order_by("subject", "pk")
        file = ImportFile.objects.get(pk=self.file.pk)
        return {
            "books": list(Book.objects.order_by("pk").values_list(*BOOK_COLUMNS)),
            "changes": [
                (ids[book_id], *rest, numbers.get(operation_id), drop_varying(before))
                for book_id, operation_id, before, *rest in changes.values_list(*CHANGE_COLUMNS)
            ],
            "events": [
                (ids[event.subject or 0], event.kind, drop_varying(json.loads(bytes(event.body)))) for event in events
            ],
            "operations": [(operation.kind, operation.state, operation.error) for operation in operations],
            "counts": [count_items(operation) for operation in operations if operation.kind != EXPORT],
            "problems": [
                (ids[subject], reason, detail)
                for operation in operations
                for subject, reason, detail in list_problems(operation)
            ],
            "findings": [
                (numbers[finding.operation_id], *(getattr(finding, name) for name in FINDING_COLUMNS))
                for finding in file.findings.order_by("operation_id", "position")
            ],
            "results": [operation.result for operation in operations],
            "workbooks": [read_workbook(operation) for operation in operations.filter(kind=EXPORT)],
        }


def drop_varying(value: Any) -> Any:
    """Returns a JSON value without ids and times."""
    if not isinstance(value, dict):
        return value
    return {name: drop_varying(field) for name, field in value.items() if name not in VARYING_FIELDS}


def read_workbook(operation: Operation) -> list[Any]:
    """Returns the number of the parts, the number of books that the operation counted, and the books."""
    records = read_records("xlsx", b"".join(iter_workbook(operation)))
    return [operation.export_chunks.count() > 1, operation.unchanged, *map(drop_varying, (r.values for r in records))]


class CancelAfter(Event):
    """Cancels an operation when a worker waits for this number of times, and waits for nothing."""

    def __init__(self, count: int, operation: Operation, faults: ConnectionFaults) -> None:
        super().__init__()
        self.count, self.operation, self.faults = count, operation, faults

    def wait(self, timeout: float | None = None) -> bool:
        self.count -= 1
        if not self.count:
            self.faults.left = 0
            # It can be lost, and who cancels has another one.
            connection.close()
            cancel_operation(self.operation.pk)
        return False


def run_with_faults(faults: ConnectionFaults, stop: Event) -> None:
    """Works until nothing is left. A worker that is killed is followed by another one, once the lease has ended."""
    for _ in range(MAX_ROUNDS):
        if not Operation.objects.filter(next_at__isnull=False).exists():
            return
        with inject_faults(faults), suppress(Killed):
            lease = None
            with suppress(*CONNECTION_ERRORS):
                lease = call_reconnecting(worker.claim_operation)
            if lease:
                worker.run_operation(lease, stop, lambda _: None)
                continue
        connection.close()
        Operation.objects.filter(next_at__isnull=False).update(next_at=Now())
    pytest.fail("The operation does not end.")


def run_operations(seed: int, chance: float, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Does one operation of each kind, and returns what they left behind."""
    random = Random(seed)  # noqa: S311  # chance that can be repeated
    library = Library()
    for kind in (CHECK, IMPORT, "edit", "isbns", "delete", "undo", EXPORT):
        monkeypatch.setattr(worker, "BATCH_SIZES", dict.fromkeys(("sqlite", "postgresql"), random.randint(2, 7)))
        library.begin(kind)
        run_with_faults(ConnectionFaults(random, chance, MAX_FAULTS), Event())
    return library.describe()


def empty_library() -> None:
    for model in (Book, Change, StoredEvent, Operation, ImportFile, User):
        model._base_manager.all().delete()
    book_audit.clear_ledger()


def test_nothing_is_lost_or_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = run_operations(0, 0, monkeypatch)
    empty_library()
    assert run_operations(SEEDS[connection.vendor], FAULT_CHANCE, monkeypatch) == undisturbed


def test_a_cancelled_operation_counts_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is cancelled after its first batch, or earlier if something fails before."""
    monkeypatch.setattr(worker, "BATCH_SIZES", dict.fromkeys(worker.BATCH_SIZES, 2))
    random = Random(0)  # noqa: S311  # chance that can be repeated
    library = Library()
    for kind in (CHECK, IMPORT, "edit", "delete", EXPORT):
        operation = library.begin(kind)
        faults = ConnectionFaults(random, FAULT_CHANCE, max_count=2)
        run_with_faults(faults, CancelAfter(2, operation, faults))
        operation.refresh_from_db()
        assert (operation.state, operation.next_at, operation.lease) == ("cancelled", None, None)
        assert Change.objects.filter(operation_id=operation.pk).count() == operation.changed
        done_positions = list(range(1, (operation.cursor or 0) + 1))
        if kind in (CHECK, IMPORT):
            findings = library.file.findings.filter(operation_id=operation.pk).order_by("position")
            assert [finding.position for finding in findings] == done_positions
        if kind == EXPORT:
            numbers = operation.export_chunks.order_by("number").values_list("number", flat=True)
            assert list(numbers) == done_positions
