"""Books imported from and exported to CSV files."""

import csv
import os
import signal
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.core.management import CommandError
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from books.files.import_tasks import IMPORT, get_counts
from books.management.commands import import_books
from books.models import Book, ImportFile, Operation
from books.operations import tasks, worker
from books.operations.lifecycle import begin_leased_operation, cancel_operation
from books.writing.changes import ConcurrentChange
from tests.support.book_files import build_exported_book, hostile_texts, read_rejected, reject_records, write_books
from tests.support.books_admin import find_anybody
from tests.support.import_command import import_file
from webhooks.models import Event

OUT_OF_BOUNDS = (
    "title: It is longer than 1,000 characters."
    " year: This year is improbable for a book."
    " isbn: It is longer than 64 characters."
)
HEADER = "title,author,year,isbn,genre\n"
# What a spreadsheet takes for the beginning of a formula, and what may stand before it.
FORMULA_SIGNS = "=+-@＝＋－＠"


def write_csv(path: Path, *lines: str, header: str = HEADER) -> Path:
    path.write_text(header + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def list_books(api: httpx.Client) -> list[dict[str, Any]]:
    books: list[dict[str, Any]] = api.get("/api/books").json()
    return books


def is_formula(cell: str) -> bool:
    return cell.startswith(("\t", "\r", "\n")) or cell.lstrip().startswith(tuple(FORMULA_SIGNS))


def read_failures(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [(row["line"], row["reason"]) for row in csv.DictReader(file)]


def test_a_failed_row_is_reported_and_the_others_are_added(
    api: httpx.Client, book: dict[str, Any], tmp_path: Path
) -> None:
    file = write_csv(
        tmp_path / "in.csv",
        "Fine,A,1,fine,G",
        "Year,A,MCM,year,G",
        f"In use,A,1,{book['isbn']},G",
        f"In use again,A,1,{book['isbn']},G",
        "Twice,A,1,fine,G",
        "Short,A,1",
        f"{'x' * 1001},A,99999999999,{'y' * 65},G",
    )
    with pytest.raises(CommandError, match="6 records not imported"):
        import_file(file)
    assert [row["title"] for row in list_books(api)] == [book["title"], "Fine"]
    assert read_failures(tmp_path / "in.failed.csv") == [
        ("3", "year: “MCM” is no year."),
        ("4", "isbn: Another book has it."),
        ("5", "isbn: The book on line 4 has it."),
        ("6", "isbn: The book on line 2 has it."),
        ("7", "row: It has 3 cells, and the first line 5."),
        ("8", OUT_OF_BOUNDS),
    ]


def test_the_file_of_failed_rows_has_no_formula() -> None:
    data = f"{HEADER.strip()},=shelf\n=1+1,@A,-44,'＝1,\tG,+1\n".encode()
    failed = reject_records("csv", data)[1].decode("utf-8-sig")
    assert list(csv.reader(StringIO(failed, newline=""))) == [
        ["line", "reason", "title", "author", "year", "isbn", "genre", "'=shelf"],
        ["2", "isbn: Another\nbook has it.", "'=1+1", "'@A", "-44", "'＝1", "'\tG", "'+1"],
    ]
    [record] = read_rejected("csv", data)
    assert [*record.values.values()] == ["=1+1", "@A", "-44", "＝1", "\tG", "+1"]


def test_a_failed_row_keeps_all_its_cells(api: httpx.Client, tmp_path: Path) -> None:
    rows = ["Eats, Shoots & Leaves,Lynne Truss,2003,1,Language", "Short,A,1", 'Quoted,"A\nB",MCM,2,G', "Last,A,MCM,3,G"]
    with pytest.raises(CommandError, match="4 records not imported"):
        import_file(write_csv(tmp_path / "in.csv", *rows))
    assert [line for line, _ in read_failures(tmp_path / "in.failed.csv")] == ["2", "3", "4", "6"]
    with (tmp_path / "in.failed.csv").open(encoding="utf-8-sig", newline="") as file:
        assert [row[2:] for row in csv.reader(file)] == list(
            csv.reader([HEADER, *"\n".join(rows).splitlines(keepends=True)])
        )
    with pytest.raises(CommandError, match="4 records not imported"):
        import_file(tmp_path / "in.failed.csv")
    assert list_books(api) == []


def test_a_dry_run_reports_and_changes_nothing(
    api: httpx.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_csv(tmp_path / "in.csv", "Fine,A,1,fine,G", "Year,A,MCM,year,G")
    earlier_failures = write_csv(tmp_path / "in.failed.csv", "Being corrected,A,1,other,G")
    with pytest.raises(CommandError, match=r"^1 record not imported\.$"):
        import_file(file, dry_run=True)
    output = capsys.readouterr()
    assert "1 books would be added." in output.out
    assert "Line 3: year: “MCM” is no year." in output.err
    assert list_books(api) == []
    assert "Being corrected" in earlier_failures.read_text()
    failed = tmp_path / "wrong.csv"
    with pytest.raises(CommandError, match=r"1 record not imported: see .*wrong\.csv"):
        import_file(file, dry_run=True, failed=failed)
    assert read_failures(failed) == [("3", "year: “MCM” is no year.")]


def test_what_is_no_file_of_books_imports_nothing(api: httpx.Client, tmp_path: Path) -> None:
    for content, message in (
        ("", "The file is empty"),
        ("a,b,c\n1,2,3\n", "names no column"),
        (HEADER, r"No record was found in the file\."),
        (f'{HEADER}"{"x" * 200_000}', "more than 131,072 characters"),
        (f'{HEADER}A,B,1900,1,"Novel\nC,D,1901,2,Novel\n', "Line 2: a quotation mark .* never closed"),
    ):
        (tmp_path / "in.csv").write_text(content)
        with pytest.raises(CommandError, match=rf"Nothing was imported\. .*{message}"):
            import_file(tmp_path / "in.csv")
    for path, message in ((tmp_path, "is a folder"), (tmp_path / "missing.csv", "No such file")):
        with pytest.raises(CommandError, match=message):
            import_file(path)
    assert list_books(api) == []


def test_other_columns_are_ignored_whatever_they_contain(api: httpx.Client, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "in.csv", header=HEADER.replace("genre", "genre,shelf"))
    file.write_bytes(file.read_bytes() + b"Fine,A,1,fine,G,\xe9\n")
    import_file(file)
    assert [book["title"] for book in list_books(api)] == ["Fine"]


def test_failed_rows_never_replace_the_file(api: httpx.Client, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "in.csv", "Year,A,MCM,year,G")
    with pytest.raises(CommandError, match="names the file itself"):
        import_file(file, failed=file)
    assert file.read_text() == f"{HEADER}Year,A,MCM,year,G\n"


@given(texts=st.lists(hostile_texts, min_size=4, max_size=4), year=st.integers(-(2**31), 2**31 - 1))
def test_no_cell_of_a_csv_file_is_a_formula(texts: list[str], year: int) -> None:
    title, author, isbn, genre = texts
    book = build_exported_book(title=title, author=author, year=year, isbn=isbn, genre=genre)
    _, cells = csv.reader(StringIO(write_books("csv", [book]).decode(), newline=""))
    assert [cell for cell in cells if is_formula(cell)] == ([str(year)] if year < 0 else [])


@pytest.mark.unannounced
@pytest.mark.parametrize(("limit", "event_count"), [(2, 2), (1, 0)])
def test_an_import_of_a_few_records_is_always_announced(
    db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, event_count: int
) -> None:
    monkeypatch.setattr(tasks, "MAX_ANNOUNCED_ALWAYS", limit)
    file = write_csv(tmp_path / "in.csv", "Lalka,Prus,1890,1,Novel", "Emma,Austen,1815,2,Novel")
    import_file(file, no_events=True)
    assert (Book.objects.count(), Event.objects.filter(kind="book.created").count()) == (2, event_count)


@pytest.fixture
def single_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch has one record."""
    monkeypatch.setitem(worker.BATCH_SIZES, connection.vendor, 1)


def call_between_batches(monkeypatch: pytest.MonkeyPatch, function: Callable[[], object]) -> None:
    # Only the module's own clock: other threads sleep, too.
    monkeypatch.setattr(import_books, "time", SimpleNamespace(sleep=lambda _: function()))


@pytest.mark.usefixtures("transactional_db", "single_records")
def test_an_import_is_an_operation_that_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call_between_batches(monkeypatch, lambda: cancel_operation(Operation.objects.get().pk))
    with pytest.raises(CommandError, match=r"^The import stopped\. What it wrote before stays.* It was cancelled\."):
        import_file(write_csv(tmp_path / "in.csv", "First,A,1,1,G", "Second,A,1,2,G"))
    assert [book.title for book in Book.objects.all()] == ["First"]
    assert Operation.objects.get().state == Operation.State.CANCELLED


@pytest.mark.usefixtures("transactional_db", "single_records")
@pytest.mark.parametrize("dry_run", [False, True])
def test_an_interrupted_command_cancels_its_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    """It tells what came back until then, and leaves no file."""

    def interrupt() -> None:
        if Operation.objects.get().cursor == 2:
            # A shell starts what runs in the background without a handler of SIGINT.
            if dry_run:
                raise KeyboardInterrupt
            signal.raise_signal(signal.SIGTERM)

    call_between_batches(monkeypatch, interrupt)
    rows = ["First,A,MCM,1,G", "Second,A,1,2,G", "Third,A,MCM,3,G"]
    with pytest.raises(KeyboardInterrupt):
        import_file(write_csv(tmp_path / "in.csv", *rows), dry_run=dry_run, failed=tmp_path / "failed.csv")
    assert read_failures(tmp_path / "failed.csv") == [("2", "year: “MCM” is no year.")]
    assert (Book.objects.count(), Operation.objects.get().state) == (0 if dry_run else 1, Operation.State.CANCELLED)
    assert not ImportFile.objects.exists()


def test_no_worker_goes_on_with_an_import_whose_command_has_died(transactional_db: None) -> None:
    operation = begin_leased_operation(IMPORT, {"rules": {"mapping": {}}}, find_anybody(), timezone.now())
    worker.run(once=True, write_line=print)
    operation.refresh_from_db()
    assert operation.state == Operation.State.WAITING
    Operation.objects.update(next_at=Now())
    worker.run(once=True, write_line=print)
    operation.refresh_from_db()
    assert operation.state == Operation.State.FAILED
    assert operation.error == "The command that began this ended before it was done."


def test_a_format_that_is_named_counts_more_than_the_first_bytes(db: None, tmp_path: Path) -> None:
    """Those of a web page are the same."""
    file = write_csv(tmp_path / "in.csv", "Lalka,Prus,1890,1,Novel,x", header="title,author,year,isbn,genre,<note>\n")
    file.write_text("<" + file.read_text(), encoding="utf-8")
    message = r"Nothing was imported\. This is another kind of XML, which the library cannot read\."
    with pytest.raises(CommandError, match=message):
        import_file(file, column=["title=<title"])
    import_file(file, column=["title=<title"], format="csv")
    assert [book.title for book in Book.objects.all()] == ["Lalka"]


def test_a_file_may_come_through_a_pipe(db: None, tmp_path: Path) -> None:
    """It is read once, and has more parts than a pipe holds."""
    pipe, rows = tmp_path / "in.csv", [f"{'T' * 90_000},T,A,1,{number},G" for number in range(10)]
    os.mkfifo(pipe)
    writer = Thread(target=write_csv, args=(pipe, *rows), kwargs={"header": f"notes,{HEADER}"})
    writer.start()
    import_file(pipe)
    writer.join()
    assert Book.objects.count() == 10
    assert not ImportFile.objects.exists()


def test_an_import_says_so_when_the_rejected_records_cannot_be_written(db: None, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "in.csv", "First,A,1,1,G", "Second,A,MCM,2,G")
    with pytest.raises(CommandError, match=r"cannot be written: .*Is a directory.* Run it again with --dry-run"):
        import_file(file, failed=tmp_path)
    assert [book.title for book in Book.objects.all()] == ["First"]


def test_a_record_comes_back_once_from_a_batch_that_is_written_again(
    transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "store_progress", fail_once(worker.store_progress))
    with pytest.raises(CommandError, match="1 record not imported"):
        import_file(write_csv(tmp_path / "in.csv", "First,A,1,1,G", "Again,A,1,1,G"))
    assert [line for line, _reason in read_failures(tmp_path / "in.failed.csv")] == ["3"]
    assert get_counts(Operation.objects.get()) == {"new": 1, "refused": 1}


def fail_once(function: Callable[..., None]) -> Callable[..., None]:
    calls: list[int] = []

    def call(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ConcurrentChange
        function(*arguments)

    return call
