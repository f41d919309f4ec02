from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from django.core.management.base import CommandError
from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError

from books.api.filters import BookSearchFilter, get_filters, select_matching
from books.files.exports import iter_pages
from books.files.formats.records import Pages
from books.files.formats.registry import FORMATS, Format, find_format_by_name, write_xlsx
from books.files.progress import show_progress_bar
from books.models import Book
from library_site.management.checked_command import CheckedCommand

FILTERS = get_filters(BookSearchFilter)


class Command(CheckedCommand):
    help = "Writes books to a file or to standard output: all, or those that match the filters of the interface."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, metavar="FILE")
        parser.add_argument("--format", choices=FORMATS, help="default: what the file's name ends like, else csv")
        for name, filter in FILTERS.items():
            parser.add_argument(f"--{name.replace('_', '-')}", metavar="TEXT", help=filter.extra["help_text"])

    def handle(self, *args: Any, file: Path | None, **options: Any) -> None:
        format = FORMATS[options["format"]] if options["format"] else (file and find_format_by_name(file))
        books = filter_books({name: options[name] for name in FILTERS if options.get(name) is not None})
        try:
            self.export(file, format or FORMATS["csv"], show_progress_bar(iter_pages(books), "Exporting books"))
        except OSError as error:
            raise CommandError(str(error)) from error

    def export(self, file: Path | None, format: Format, pages: Pages) -> None:
        """Raises CommandError, OSError."""
        if file:
            with file.open("wb") as stream:
                if format.write:
                    stream.writelines(format.write(pages))
                else:
                    write_xlsx(pages, stream)
        elif format.write:
            for piece in format.write(pages):
                self.stdout.write(piece.decode(), ending="")
        else:
            raise CommandError(f"{format.label} is written to a file only.")


def filter_books(filters: Mapping[str, str]) -> QuerySet[Book]:
    """Raises CommandError."""
    try:
        return select_matching(filters)
    except ValidationError as error:
        details = cast("dict[str, list[str]]", error.detail)
        reasons = (f"{name}: {text}" for name, texts in details.items() for text in texts)
        raise CommandError(" ".join(reasons)) from error
