import csv
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from books.importing import Failure, UnreadableFile, import_books
from books.progress import batches

BATCH = 1_000


class Command(BaseCommand):
    help = "Adds the books of a CSV file with the columns title, author, year, isbn, genre and, if you like, available."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.csv")
        parser.add_argument("--dry-run", action="store_true", help="check and report, and change nothing")
        parser.add_argument("--failed", type=Path, help="where failed rows go (default: FILE.failed.csv)")

    def handle(self, *args: Any, file: Path, dry_run: bool, failed: Path | None, **options: Any) -> None:
        """A row that failed goes to a file of its own, to be mended there and imported again."""
        failures = FailedRows(failed or file.with_suffix(".failed.csv"))
        try:
            # What is no UTF-8 comes as lone surrogates, which the rules of a book refuse by row.
            with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
                added = import_books(
                    lines,
                    failures.add,
                    lambda rows: batches(rows, BATCH, "Importing books"),
                    now=timezone.now(),
                    dry_run=dry_run,
                )
        except (OSError, UnreadableFile) as error:
            raise CommandError(f"Nothing was imported. {error}") from error
        finally:
            failures.close()
        self.stdout.write(f"{added} books {'would be added' if dry_run else 'added'}.")
        if failures.count:
            raise CommandError(f"{failures.count} rows failed: see {failures.path}.")


class FailedRows:
    """The file of failed rows, made with the first of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0

    def add(self, failure: Failure) -> None:
        cells = {name: cell for name, cell in failure.cells.items() if name not in ("", "line", "reason")}
        if not self.count:
            self.file = self.path.open("w", encoding="utf-8", errors="surrogateescape", newline="")
            self.writer = csv.DictWriter(self.file, ["line", "reason", *cells], extrasaction="ignore")
            self.writer.writeheader()
        self.writer.writerow({**cells, "line": failure.line, "reason": failure.reason})
        self.count += 1

    def close(self) -> None:
        if self.count:
            self.file.close()
