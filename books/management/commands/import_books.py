"""Imports a file. The command stores it, and runs in its own process the operation that the admin page would start."""

import signal
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone

from books.files.columns.tables import COLUMN_NAMES, FIELDS_BY_PLACE, find_dialect, guess_mapping, list_ignored
from books.files.formats.encodings import ENCODINGS, MARC_ENCODINGS
from books.files.formats.records import UnreadableFile
from books.files.formats.registry import FORMATS
from books.files.import_tasks import (
    CHECK,
    IMPORT,
    FileParameters,
    count_numbered,
    get_counts,
    get_left_out,
    get_reasons,
    read_parameters,
)
from books.files.matching import REJECTED_VERDICTS, Verdict
from books.files.parsing import ImportRules, MissingColumns, require_mapped_fields
from books.files.progress import show_progress_bar
from books.files.reader.client import FilePreview, ReaderFailed, read_preview
from books.files.reasons import ABSENT, list_groups, name_place
from books.files.rejected_records import iter_rejected_file, iter_rejected_rows
from books.files.uploads import build_source, store_stream
from books.history.actors import get_or_create_actor
from books.models import Actor, ImportFile, Operation
from books.operations.lifecycle import OperationEnded, begin_leased_operation, cancel_operation
from books.operations.worker import PAUSES, OperationRunner
from library_site.jobs.leases import LeaseLost
from library_site.jobs.worker import CONNECTION_ERRORS
from library_site.json_lines import write_note
from library_site.management.checked_command import CheckedCommand

NOTHING = "Nothing was imported."
STOPPED = "The import stopped. What it wrote before stays; it can be run again, or undone as an operation."
# The options that are fields of ImportRules, too.
RULE_OPTIONS = ("match_by", "on_match", "on_none", "take_doubtful", "leave_without_isbn", "use_number")
# The number of reason groups that are printed.
MAX_SHOWN_GROUPS = 20
# The order in which they are printed.
COUNTED = {
    Verdict.CHANGED: "changed",
    Verdict.SAME: "the same",
    Verdict.LEFT: "left as they are",
    Verdict.WITHOUT_ISBN: "without ISBN",
}


class Command(CheckedCommand):
    help = "Imports books from a file of any format that export_books writes. Says how it reads the file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--dry-run", action="store_true", help="check and report, and change nothing")
        parser.add_argument(
            "--failed",
            type=Path,
            help="where records go that are not imported: MARC as it came, all else as CSV (default:"
            " FILE.failed.EXTENSION)",
        )
        names = [format.name for format in FORMATS.values() if format.reader]
        parser.add_argument("--format", choices=names, help="default: what the file begins like")
        parser.add_argument("--encoding", choices=ENCODINGS, default="", help="of a text file (default: found)")
        parser.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="FIELD=COLUMN",
            help="which column has a field",
        )
        parser.add_argument(
            "--default", action="append", default=[], metavar="FIELD=TEXT", help="for records that leave it empty"
        )
        parser.add_argument(
            "--match-by",
            choices=["isbn13", "isbn", "id"],
            default="isbn13",
            help="what makes a record match a book: its isbn, else the same ISBN in another writing (isbn13); only the"
            " isbn; or first of all the id",
        )
        parser.add_argument(
            "--on-match",
            choices=["refuse", "replace", "fill", "leave"],
            default="refuse",
            help="report an error, replace the book's fields, fill its empty ones, or leave it",
        )
        parser.add_argument("--on-none", choices=["add", "leave"], default="add", help="of a record without a match")
        without_isbn = parser.add_mutually_exclusive_group()
        without_isbn.add_argument(
            "--use-number", action="store_true", help="of a record without an ISBN, store its number as isbn"
        )
        without_isbn.add_argument(
            "--leave-without-isbn", action="store_true", help="leave out records that have no ISBN"
        )
        parser.add_argument("--take-doubtful", action="store_true", help="import records with warnings, too")
        parser.add_argument("--no-events", action="store_true", help="publish none, of more than 1,000 records")

    def handle(self, *args: Any, file: Path, dry_run: bool, failed: Path | None, **options: Any) -> None:
        if file.is_dir():
            raise CommandError(f"{file} is a folder.")
        if failed and failed.resolve() == file.resolve():
            raise CommandError("--failed names the file itself.")
        now = timezone.now()
        try:
            with interrupt_on_sigterm(), file.open("rb") as stream, store_stream(file.name, stream, now) as stored_file:
                rules = self.read_rules(stored_file, options)
                parameters = FileParameters(stored_file.pk, options["encoding"], rules, events=not options["no_events"])
                kind, actor = CHECK if dry_run else IMPORT, get_or_create_actor(Actor.Channel.IMPORT)
                operation = begin_leased_operation(kind, msgspec.to_builtins(parameters), actor, now)
                self.import_file(stored_file, operation, file, failed)
        except (OSError, ReaderFailed, UnreadableFile, *CONNECTION_ERRORS) as error:
            raise CommandError(f"{NOTHING} {str(error) or error.__doc__}") from error

    def read_rules(self, file: ImportFile, options: Mapping[str, Any]) -> ImportRules:
        """Prints how the file is read. Raises UnreadableFile, ReaderFailed, CommandError."""
        preview = read_preview(build_source(file, options["encoding"], format=options["format"] or ""))
        rules = build_rules(preview, options)
        self.describe_preview(preview, rules)
        try:
            require_mapped_fields(rules)
        except MissingColumns as error:
            advice = "--column FIELD=COLUMN names a column, and --default"
            raise CommandError(f"{NOTHING} {error} {advice} {error.names[0]}=TEXT fills a field of all.") from error
        return rules

    def describe_preview(self, preview: FilePreview, rules: ImportRules) -> None:
        write_note(self.stderr, f"Read as {preview.description}.")
        if preview.warning:
            # Each record of MARC 21 says its encoding.
            others = preview.proposed or [name for name in MARC_ENCODINGS[1:] if preview.format == "marc"]
            advice = f"If so: --encoding {' or '.join(others)}" if others else "--encoding reads another one."
            write_note(self.stderr, f"{preview.warning} {advice}", "WARNING")
        if profile := find_dialect(preview.columns).name:
            write_note(self.stderr, f"Recognised as {profile}.")
        for note in preview.notes:
            write_note(self.stderr, note)
        if ignored := list_ignored(preview.columns, rules.mapping):
            write_note(self.stderr, f"Left out: {', '.join(ignored)}.")

    def import_file(self, stored_file: ImportFile, operation: Operation, file: Path, failed: Path | None) -> None:
        """Raises CommandError, also if records are rejected."""
        is_check = operation.kind == CHECK
        try:
            try:
                run_to_end(operation, "Checking books" if is_check else "Importing books")
            finally:
                place = self.report_rejected(stored_file, operation, file, failed)
        except CONNECTION_ERRORS as error:
            raise CommandError(f"{STOPPED} {error}") from error
        if operation.state != Operation.State.DONE:
            begin = NOTHING if is_check or not operation.started_at else STOPPED
            raise CommandError(f"{begin} {operation.error or 'It was cancelled.'}")
        if left_out := get_left_out(operation):
            write_note(self.stderr, left_out)
        counts = get_counts(operation)
        self.stdout.write(f"{counts[Verdict.NEW]} books {'would be added' if is_check else 'added'}.")
        numbered = [f"{number} by the number of their record"] if (number := count_numbered(operation)) else []
        others = [*(f"{counts[verdict]} {text}" for verdict, text in COUNTED.items() if counts[verdict]), *numbered]
        if others:
            self.stdout.write(f"{', '.join(others)}.")
        if rejected_count := count_rejected(operation):
            noun = "record" if rejected_count == 1 else "records"
            raise CommandError(f"{rejected_count} {noun} not imported{place}.")

    def report_rejected(self, stored_file: ImportFile, operation: Operation, file: Path, failed: Path | None) -> str:
        """Writes the rejected records, also after an incomplete import. Returns the path. Raises CommandError.

        A dry run without a path prints them, because the user may just be correcting the file of an earlier import.
        """
        if not count_rejected(operation):
            return ""
        place = ""
        if operation.kind == CHECK and not failed:
            for _position, line, reason in iter_rejected_rows(stored_file, operation):
                place_in_file = name_place(read_parameters(operation).rules.format, line)
                write_note(self.stderr, f"{place_in_file}: {reason}", "WARNING")
        else:
            place = f": see {write_rejected_file(stored_file, operation, file, failed)}"
        reasons = sum((get_reasons(operation, verdict) for verdict in REJECTED_VERDICTS), Counter())
        for count, reason in list_groups(reasons)[:MAX_SHOWN_GROUPS]:
            write_note(self.stderr, f"{count} × {reason}", "WARNING")
        if any(ABSENT in reason for reason in reasons):
            write_note(self.stderr, "What records leave empty: --default genre=TEXT; an ISBN: --use-number.")
        return place


@contextmanager
def interrupt_on_sigterm() -> Iterator[None]:
    """Lets SIGTERM cancel the import, as Ctrl-C does. It would end the process in the middle of a batch."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def build_rules(preview: FilePreview, options: Mapping[str, Any]) -> ImportRules:
    columns = read_column_pairs("--column", options["column"], FIELDS_BY_PLACE)
    if unknown := [column for column in columns.values() if column not in preview.columns]:
        raise CommandError(f"The file has no column {', '.join(unknown)}.")
    return ImportRules(
        mapping=guess_mapping(preview.columns) | columns,
        **{name: options[name] for name in RULE_OPTIONS},
        defaults=read_column_pairs("--default", options["default"], COLUMN_NAMES),
        is_exact=find_dialect(preview.columns).is_exact,
        format=preview.format,
    )


def read_column_pairs(option: str, texts: list[str], fields: Collection[str]) -> dict[str, str]:
    """Parses FIELD=VALUE. Raises CommandError."""
    pairs = dict(text.partition("=")[::2] for text in texts)
    if unknown := [field for field in pairs if field not in fields]:
        raise CommandError(f"{option}: no field {', '.join(unknown)}. There are {', '.join(fields)}.")
    return pairs


def run_to_end(operation: Operation, description: str) -> None:
    """Runs an operation as a worker does, with a progress bar. An interrupted one is cancelled, and starts again from
    the beginning.
    """
    try:
        with suppress(LeaseLost):
            runner = OperationRunner(operation, Event())
            runner.advance()
            operation.refresh_from_db(fields=["matched"])
            for _ in show_progress_bar(iter_batches(runner), description, operation.matched):
                # Lets other writers in.
                time.sleep(PAUSES[connection.vendor])
    finally:
        with suppress(OperationEnded, *CONNECTION_ERRORS):
            cancel_operation(operation.pk)
        operation.refresh_from_db()


def iter_batches(runner: OperationRunner) -> Iterator[Sequence[int]]:
    """Yields the positions of the records of each batch."""
    done = 0
    while not runner.result and runner.advance():
        cursor = Operation.objects.values_list("cursor", flat=True).get(pk=runner.operation.pk) or 0
        yield range(done, cursor)
        done = cursor


def count_rejected(operation: Operation) -> int:
    counts = get_counts(operation)
    return sum(counts[verdict] for verdict in REJECTED_VERDICTS)


def write_rejected_file(stored_file: ImportFile, operation: Operation, file: Path, failed: Path | None) -> Path:
    """Returns the path of the file: next to the imported file, unless the user names another. Raises CommandError."""
    try:
        pieces = iter_rejected_file(stored_file, operation)
        extension = FORMATS[next(pieces).decode()].extension
        path = failed or file.with_name(f"{file.stem}.failed{extension}")
        with path.open("wb") as stream:
            stream.writelines(pieces)
        return path
    except (OSError, ReaderFailed, UnreadableFile) as error:
        advice = "Run it again with --dry-run, --on-match leave and another --failed."
        raise CommandError(f"The records that were not imported cannot be written: {error} {advice}") from error
