from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Self

from django.core.management.base import CommandError
from django.db import OperationalError
from django.utils import timezone

from books.files.columns.mapping import guess_mapping, list_ignored
from books.files.columns.names import COLUMN_NAMES, MEMBERS_BY_PLACE
from books.files.columns.profiles import find_profile
from books.files.formats.encodings import ENCODINGS
from books.files.formats.records import RejectedFile, Table, UnreadableFile
from books.files.formats.registry import FORMATS, Format, find_format
from books.files.local_imports import LocalFile, check_books, import_books
from books.files.matching import Decision, Verdict
from books.files.parsing import ImportRules, require_mapped_members
from books.files.reasons import add_reasons, list_groups, name_place
from books.history.actors import find_actor
from books.models import Actor
from books.operations.tasks import OperationFailed
from library_site.jobs.leases import LeaseLost
from library_site.jobs.worker import CONNECTION_ERRORS
from library_site.management.checked_command import CheckedCommand

STOPPED = "The import stopped. What it wrote before stays; it can be run again, or undone as an operation."
# The largest groups of reasons.
MAX_SHOWN_GROUPS = 20
# In the order in which they are printed.
COUNTED = {
    Verdict.CHANGED: "changed",
    Verdict.SAME: "the same already",
    Verdict.LEFT: "left as they are",
    Verdict.WITHOUT_ISBN: "without ISBN, left out",
}


class Command(CheckedCommand):
    help = "Imports books from a file of any format that export_books writes. Says how it reads the file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--dry-run", action="store_true", help="check and report, and change nothing")
        parser.add_argument(
            "--failed", type=Path, help="where refused records go, in the same format (default: FILE.failed.EXTENSION)"
        )
        parser.add_argument("--format", choices=FORMATS, help="default: what the file begins like")
        parser.add_argument("--encoding", choices=ENCODINGS, default="", help="of a text file (default: found)")
        parser.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="MEMBER=COLUMN",
            help="where a member is",
        )
        parser.add_argument(
            "--default", action="append", default=[], metavar="MEMBER=TEXT", help="for records that leave it empty"
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
            help="refuse the record, replace the book's members, fill its empty ones, or leave it",
        )
        parser.add_argument("--on-none", choices=["add", "leave"], default="add", help="of a record without a match")
        parser.add_argument("--leave-without-isbn", action="store_true", help="leave out records that have no ISBN")
        parser.add_argument("--take-doubtful", action="store_true", help="import doubtful records, too")
        parser.add_argument("--no-events", action="store_true", help="publish none, of more than 1,000 records")

    def handle(self, *args: Any, file: Path, dry_run: bool, failed: Path | None, **options: Any) -> None:
        if file.is_dir():
            raise CommandError(f"{file} is a folder.")
        if failed and failed.resolve() == file.resolve():
            raise CommandError("--failed names the file itself.")
        # A dry run prints what is refused: the file may have records of an earlier import that are being corrected.
        path = failed or (None if dry_run else file.with_name(f"{file.stem}.failed{file.suffix}"))
        try:
            with ExitStack() as stack:
                stream = stack.enter_context(file.open("rb"))
                format = FORMATS[options["format"]] if options["format"] else find_format(stream, file.name)
                failures = stack.enter_context(Failures(path, self.stderr.write, format))
                self.import_stream(stream, format, failures, dry_run, options)
        except (OSError, OperationFailed, OperationalError, UnreadableFile) as error:
            raise CommandError(f"Nothing was imported. {str(error) or error.__doc__}") from error
        for count, reason in list_groups(failures.groups)[:MAX_SHOWN_GROUPS]:
            self.stderr.write(f"{count} × {reason}")
        if failures.count:
            raise CommandError(f"{failures.count} rows failed{f': see {path}' if path else ''}.")

    def import_stream(
        self, stream: BinaryIO, format: Format, failures: "Failures", dry_run: bool, options: Mapping[str, Any]
    ) -> None:
        """Raises UnreadableFile, CommandError."""
        table = failures.table = format.read(stream, options["encoding"])
        rules = read_rules(table, format, options)
        self.describe_table(table, format, rules)
        require_mapped_members(rules)
        now, file = timezone.now(), LocalFile(stream, format, options["encoding"], failures.add)
        if dry_run:
            counts = check_books(file, rules, now)
        else:
            actor = find_actor(Actor.Channel.IMPORT)
            try:
                counts = import_books(file, rules, actor, now, announce=not options["no_events"])
            except (OperationFailed, LeaseLost, *CONNECTION_ERRORS) as error:
                raise CommandError(f"{STOPPED} {str(error) or error.__doc__}") from error
        self.stdout.write(f"{counts[Verdict.NEW]} books {'would be added' if dry_run else 'added'}.")
        others = [f"{counts[kind]} {text}" for kind, text in COUNTED.items() if counts[kind]]
        if others:
            self.stdout.write(f"{', '.join(others)}.".capitalize())

    def describe_table(self, table: Table, format: Format, rules: ImportRules) -> None:
        """Says how the file is read, and what is left out."""
        self.stderr.write(f"Read as {table.description}.")
        if table.warning:
            others = [name for name in format.encodings if not name.startswith("utf")]
            self.stderr.write(f"{table.warning} If so: --encoding {' or '.join(others)}")
        if profile := find_profile(table.columns).name:
            self.stderr.write(f"Recognised as {profile}.")
        for note in table.notes:
            self.stderr.write(note)
        if ignored := list_ignored(table.columns, rules.mapping):
            self.stderr.write(f"Left out: {', '.join(ignored)}.")


def read_rules(table: Table, format: Format, options: Mapping[str, Any]) -> ImportRules:
    columns = read_pairs("--column", options["column"], MEMBERS_BY_PLACE)
    if unknown := [column for column in columns.values() if column not in table.columns]:
        raise CommandError(f"The file has no column {', '.join(unknown)}.")
    return ImportRules(
        mapping=guess_mapping(table.columns) | columns,
        match_by=options["match_by"],
        on_match=options["on_match"],
        on_none=options["on_none"],
        take_doubtful=options["take_doubtful"],
        leave_without_isbn=options["leave_without_isbn"],
        defaults=read_pairs("--default", options["default"], COLUMN_NAMES),
        is_exact=find_profile(table.columns).is_exact,
        format=format.name,
    )


def read_pairs(option: str, texts: list[str], members: Collection[str]) -> dict[str, str]:
    """Reads MEMBER=VALUE. Raises CommandError."""
    pairs = dict(text.partition("=")[::2] for text in texts)
    if unknown := [member for member in pairs if member not in members]:
        raise CommandError(f"{option}: no member {', '.join(unknown)}. There are {', '.join(members)}.")
    return pairs


class Failures:
    """A file of the records that are refused, to correct and import again. It is created for the first one.

    Without a path the lines and the reasons are printed.
    """

    def __init__(self, path: Path | None, write: Callable[[str], object], format: Format) -> None:
        self.path, self.write, self.format = path, write, format
        self.count = 0
        self.groups: Counter[str] = Counter()
        self.table: Table
        self.stream: BinaryIO | None = None
        self.file: RejectedFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file and self.stream:
            self.file.close()
            self.stream.close()

    def add(self, decision: Decision) -> None:
        self.count += 1
        self.groups = add_reasons(self.groups, [decision.reason])
        record = decision.record.raw
        if not self.path:
            self.write(f"{name_place(self.format.name, record.line)}: {decision.reason}")
            return
        if not self.file:
            self.stream = self.path.open("wb")
            self.file = self.format.rejected_file(self.stream, self.table)
        self.file.add(record, decision.reason)
