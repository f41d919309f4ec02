"""Imports a file of books, batch by batch, and reports each record that comes back with its line and the reason."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from django.db import connection, transaction

from books.fields import to_naive_utc
from books.files.earlier_records import EarlierRecords
from books.files.formats.records import Table
from books.files.matching import REJECTED_VERDICTS, Decision, Verdict, decide_records, read_books, write_decisions
from books.files.parsing import ImportRules, parse_records
from books.files.progress import iter_batches
from books.history.actors import ActorRef, begin_operation
from books.operations.edits import MAX_ANNOUNCED_ALWAYS
from books.operations.worker import PAUSES, BatchLimit
from books.writing.changes import lock_books

# The kind of the operation that all changes of an import belong to.
IMPORT = "import"
# Records that are decided together, and keep nobody waiting.
CHECKED_BATCH = 500
Counts = Counter[Verdict]
# Is called for each record that is refused or doubtful, before the transaction of its batch ends.
ReportRejected = Callable[[Decision], None]


def count_records(table: Table) -> int:
    """Reads the whole file once, so that nothing is written if a part of it cannot be read. Raises UnreadableFile."""
    return sum(1 for _ in table.records)


def check_books(table: Table, rules: ImportRules, report: ReportRejected, now: datetime, count: int) -> Counts:
    """Decides what becomes of the records and changes nothing; `count` is how many there are. Raises UnreadableFile."""
    counts: Counts = Counter()
    earlier = EarlierRecords()
    for batch in iter_batches(parse_records(table.records, rules), lambda: CHECKED_BATCH, "Checking books", count):
        decisions = decide_records(batch, rules, read_books, earlier, to_naive_utc(now).date())
        report_rejected(decisions, report)
        counts.update(decision.verdict for decision in decisions)
    return counts


def import_books(
    table: Table,
    rules: ImportRules,
    report: ReportRejected,
    actor: ActorRef,
    now: datetime,
    count: int,
    announce: bool = True,
) -> Counts:
    """Imports the records in the order of the file, each batch in a transaction. Only large imports can do without
    events.

    Raises UnreadableFile, ConcurrentChange; then the batches before stay.
    """
    counts: Counts = Counter()
    actor = begin_operation(IMPORT, actor, now)
    limit, earlier = BatchLimit(), EarlierRecords(actor.operation_id)
    for batch in iter_batches(parse_records(table.records, rules), lambda: limit.size, "Importing books", count):
        start = time.monotonic()
        with transaction.atomic():
            decisions = decide_records(batch, rules, lock_books, earlier, to_naive_utc(now).date())
            decisions = write_decisions(decisions, actor, now, announce or count <= MAX_ANNOUNCED_ALWAYS)
            report_rejected(decisions, report)
        counts.update(decision.verdict for decision in decisions)
        limit.adapt(time.monotonic() - start)
        # Other writers get their turn.
        time.sleep(PAUSES[connection.vendor])
    return counts


def report_rejected(decisions: Iterable[Decision], report: ReportRejected) -> None:
    for decision in decisions:
        if decision.verdict in REJECTED_VERDICTS:
            report(decision)
