"""Files that `import_books` reads, and a book that they have."""

from pathlib import Path
from typing import Any

from django.core.management import call_command

from books.models import Book
from tests.support.books_admin import create_book

ISBN = "978-0-14-143951-8"
HEADER = "id,title,author,year,isbn,genre,available\n"


def write_file(tmp_path: Path, *rows: str, header: str = HEADER) -> Path:
    file = tmp_path / "in.csv"
    file.write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return file


def import_file(file: Path, **options: Any) -> None:
    """What is doubtful about the values is looked at where a test says so."""
    call_command("import_books", file, **{"take_doubtful": True, **options})


def list_failures(file: Path) -> list[str]:
    return [line.rstrip() for line in file.with_name("in.failed.csv").read_text(encoding="utf-8").splitlines()[1:]]


def create_emma() -> Book:
    """A book with an improbable year and without a genre."""
    return create_book(title="Emma", isbn=ISBN, genre=" ", year=1)
