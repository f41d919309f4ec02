"""Imports a file of this machine: the command begins an operation of the same kind as the admin's, and does it itself.

An operator chooses the file, so this process reads it.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from threading import Event
from typing import BinaryIO, NamedTuple

import msgspec
from django.db import connection

from books.files.formats.records import Record, Table, UnreadableFile
from books.files.formats.registry import Format
from books.files.import_tasks import (
    CHECK,
    IMPORT,
    CheckTask,
    FileTask,
    ImportTask,
    add_counts,
    get_counts,
    get_rules,
)
from books.files.matching import REJECTED_VERDICTS, Decision
from books.files.parsing import ImportRules
from books.files.progress import show_bar
from books.history.actors import ActorRef
from books.models import Operation
from books.operations.lifecycle import OperationEnded, begin_leased_operation, cancel_operation
from books.operations.tasks import OperationFailed
from books.operations.worker import PAUSES, OperationRunner
from library_site.jobs.worker import CONNECTION_ERRORS

# Records that are decided together where nobody waits.
CHECKED_BATCH = 500
# A check writes nothing.
NO_ACTOR = ActorRef(0)
# Is called for each record that comes back, before the transaction of its batch ends.
ReportRejected = Callable[[Decision], None]


class LocalFile(NamedTuple):
    stream: BinaryIO
    format: Format
    encoding: str
    report: ReportRejected

    def open_table(self) -> Table:
        """Raises UnreadableFile."""
        return self.format.read(self.stream, self.encoding)


class LocalFileTask(FileTask):
    """Reads the records of a file that this process has."""

    def __init__(self, file: LocalFile) -> None:
        super().__init__()
        self.file = file
        self.reported = 0
        self.decisions: Sequence[Decision] = ()

    def count_records(self, operation: Operation) -> int:
        return sum(1 for _ in self.file.open_table().records)

    def load_corrections(self, operation: Operation) -> Mapping[int, Mapping[str, str]]:
        """A file of this machine has no page."""
        return {}

    def iter_records(self, operation: Operation) -> Iterator[Record]:
        return self.file.open_table().records

    def store_decisions(self, operation: Operation, decisions: Sequence[Decision]) -> None:
        """Reports what comes back. A batch comes again if the database gave its transaction up."""
        self.decisions = decisions
        for decision in decisions:
            if decision.verdict in REJECTED_VERDICTS and decision.record.position > self.reported:
                self.file.report(decision)
                self.reported = decision.record.position


class LocalCheckTask(LocalFileTask, CheckTask):
    pass


class LocalImportTask(LocalFileTask, ImportTask):
    pass


def check_books(file: LocalFile, rules: ImportRules, now: datetime) -> Counter[str]:
    """Decides what becomes of the records and changes nothing. Returns their numbers by verdict.

    Raises OperationFailed.
    """
    operation = Operation(kind=CHECK, created_at=now, parameters={"rules": msgspec.to_builtins(rules)})
    task = LocalCheckTask(file)
    operation.matched, operation.cursor, operation.last = task.plan(operation)
    for decisions in show_bar(iter_checked(operation, task, now), "Checking books", operation.matched):
        task.store_decisions(operation, decisions)
        operation.result = add_counts(operation, decisions)
    return get_counts(operation)


def iter_checked(operation: Operation, task: LocalCheckTask, now: datetime) -> Iterator[list[Decision]]:
    while operation.cursor != operation.last:
        batch = task.read_batch(operation, CHECKED_BATCH)
        yield task.decide(operation, get_rules(operation), batch.items, NO_ACTOR, now)
        operation.cursor = batch.cursor


def import_books(
    file: LocalFile, rules: ImportRules, actor: ActorRef, now: datetime, *, announce: bool
) -> Counter[str]:
    """Imports the records in the order of the file, each batch in a transaction. Returns their numbers by verdict.

    Only large imports can do without events. Raises UnreadableFile; then nothing is written. Raises OperationFailed,
    LeaseLost, and the errors of a database that does not answer; then the batches before stay.
    """
    parameters = {"rules": msgspec.to_builtins(rules), "events": announce}
    operation = begin_leased_operation(IMPORT, parameters, actor, now)
    task = LocalImportTask(file)
    runner = OperationRunner(operation, Event(), task)
    try:
        runner.advance()
        operation.refresh_from_db()
        for _ in show_bar(iter_written(runner, task), "Importing books", operation.matched):
            # Other writers get their turn.
            time.sleep(PAUSES[connection.vendor])
    finally:
        end_operation(operation)
    operation.refresh_from_db()
    if operation.state == Operation.State.FAILED:
        raise OperationFailed(operation.error) if operation.started_at else UnreadableFile(operation.error)
    return get_counts(operation)


def iter_written(runner: OperationRunner, task: LocalImportTask) -> Iterator[Sequence[Decision]]:
    while not runner.result and runner.advance():
        yield task.decisions


def end_operation(operation: Operation) -> None:
    """No worker can go on with it, because the file is here. A database that is away ends it when its lease ends."""
    with suppress(OperationEnded, *CONNECTION_ERRORS):
        cancel_operation(operation.pk)
