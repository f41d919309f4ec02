from argparse import ArgumentParser
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from books.exchange import exports
from books.exchange.progress import show_progress


class Command(BaseCommand):
    help = "Writes all books as CSV, to a file or to standard output."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, metavar="FILE.csv")

    def handle(self, *args: Any, file: Path | None, **options: Any) -> None:
        try:
            with (
                file.open("w", encoding="utf-8", newline="") if file else nullcontext(self.stdout) as output,
                closing(exports.iter_rows()) as rows,
            ):
                exports.write_csv(output, show_progress(rows, "Exporting books"))
        except OSError as error:
            raise CommandError(str(error)) from error
