import csv
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TextIO

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError
from django.utils import timezone

from books.changes import ConcurrentChange
from books.exchange.csv_cells import escape_formula
from books.exchange.imports import REPORT_COLUMNS, FailedRow, UnreadableFile, import_books
from books.history.actors import find_actor
from books.models import Actor
from library_site.db.integers import parse_integer


class Command(BaseCommand):
    help = "Adds the books of a CSV file with the columns title, author, year, isbn, genre and, if you like, available."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.csv")
        parser.add_argument("--dry-run", action="store_true", help="check and report, and change nothing")
        parser.add_argument("--failed", type=Path, help="where failed rows go (default: FILE.failed.csv)")

    def handle(self, *args: Any, file: Path, dry_run: bool, failed: Path | None, **options: Any) -> None:
        if file.is_dir():
            raise CommandError(f"{file} is a folder.")
        if failed and failed.resolve() == file.resolve():
            raise CommandError("--failed names the file itself.")
        # A dry run prints the rows that fail: the file may have rows of an earlier import that are being corrected.
        failed_path = failed or (None if dry_run else file.with_name(f"{file.stem}.failed.csv"))
        try:
            # Bytes that are not UTF-8 become lone surrogates. The rules of a book refuse them row by row.
            with (
                file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines,
                FailedRows(failed_path, self.stderr.write) as failures,
            ):
                actor = find_actor(Actor.Channel.IMPORT)
                count = import_books(lines, failures.add, actor, now=timezone.now(), dry_run=dry_run)
        except (OSError, OperationalError, UnreadableFile, ConcurrentChange) as error:
            raise CommandError(f"Nothing was imported. {str(error) or error.__doc__}") from error
        self.stdout.write(f"{count} books {'would be added' if dry_run else 'added'}.")
        if failures.count:
            raise CommandError(f"{failures.count} rows failed{f': see {failed_path}' if failed_path else ''}.")


class FailedRows:
    """A CSV file of the rows that failed, to correct and import again. It is created for the first such row.

    Without a path the lines and the reasons are printed.
    """

    def __init__(self, path: Path | None, write: Callable[[str], object]) -> None:
        self.path = path
        self.write = write
        self.count = 0
        self.file: TextIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file:
            self.file.close()

    def add(self, failure: FailedRow) -> None:
        self.count += 1
        if not self.path:
            self.write(f"Line {failure.line}: {failure.reason}")
            return
        if not self.file:
            self.file = self.path.open("w", encoding="utf-8", errors="surrogateescape", newline="")
            self.writer = csv.writer(self.file)
            self.writer.writerow([*REPORT_COLUMNS, *map(escape_formula, failure.columns)])
        self.writer.writerow([failure.line, failure.reason, *escape_cells(failure.columns, failure.cells)])
        # The rows that failed must be on disk before the import ends.
        self.file.flush()


def escape_cells(columns: list[str], cells: list[str]) -> list[str]:
    """Escapes all cells except a year, which stays a number."""
    year = columns.index("year")
    return [
        cell if place == year and parse_integer(cell.strip()) is not None else escape_formula(cell)
        for place, cell in enumerate(cells)
    ]
