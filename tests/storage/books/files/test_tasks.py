"""Checks, imports and exports that a worker does: nothing of a file is left out, and what is cut off is no end."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from psycopg import errors

from books.files import export_tasks, uploads
from books.files.export_tasks import ExportTask, iter_workbook
from books.files.import_tasks import ImportTask
from books.history.actors import ActorRef
from books.models import Book, Change, ImportChunk, Operation
from books.operations import worker
from books.operations.tasks import BatchCounts
from books.operations.worker import OperationRunner
from tests.support.book_files import build_exported_book, read_records, write_books
from tests.support.books import build_isbn
from tests.support.books_admin import change_book, create_book
from tests.support.concurrency import start_concurrently
from tests.support.imports import store_file
from tests.support.operations import (
    begin_check,
    begin_export,
    begin_import,
    claim_runner,
    count_items,
    create_head_librarian,
    run_operations,
    skip_delays,
)

BOOK_COUNT = 5
MISSING = "A part of the file is missing. Upload it again."


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "CHUNK_BYTES", 500)
    monkeypatch.setattr(export_tasks, "CHUNK_BYTES", 2_000)
    monkeypatch.setattr(worker, "BATCH_SIZES", {"sqlite": 2, "postgresql": 2})
    skip_delays(monkeypatch)


def build_file(name: str) -> bytes:
    books = [build_exported_book(id=n, isbn=build_isbn(n), title="T" * 200) for n in range(BOOK_COUNT)]
    return write_books(name, books)


def head_user_id() -> int:
    return int(User.objects.get().pk)


def do_steps(operation: Operation, count: int) -> OperationRunner:
    """Leases the operation and does so many steps of it."""
    runner = claim_runner()
    for _ in range(count):
        assert runner.advance()
    operation.refresh_from_db()
    return runner


@pytest.mark.parametrize(("name", "part"), [("csv", "middle"), ("marc", "last"), ("xlsx", "cut off")])
def test_a_missing_part_is_not_the_end_of_the_file(head: ActorRef, name: str, part: str) -> None:
    """Whether it was never there, or is lost while the file is read."""
    file = store_file(build_file(name), head_user_id())
    chunks = ImportChunk.objects.filter(file=file).order_by("-number")
    assert chunks.count() > 2
    first, second = begin_check(head, file), begin_import(head, file)
    do_steps(first, 1)
    chunk = chunks[1] if part == "middle" else chunks[0]
    if part == "cut off":
        ImportChunk.objects.filter(pk=chunk.pk).update(content=bytes(chunk.content)[:-1])
    else:
        chunk.delete()
    run_operations(second)
    assert (second.state, second.error) == ("failed", MISSING)
    Operation.objects.filter(pk=first.pk).update(lease=None, next_at="2000-01-01T00:00:00Z")
    run_operations(first)
    assert (first.state, first.error) == ("failed", MISSING)


def test_probable_years_end_with_the_day_on_which_an_operation_began(head: ActorRef) -> None:
    operation = begin_check(head, store_file(build_file("csv"), head_user_id()))
    Operation.objects.update(created_at="1812-12-31T23:59:59Z")
    run_operations(operation)
    assert (operation.result or {})["counts"] == {"doubtful": BOOK_COUNT}


def give_up_once(monkeypatch: pytest.MonkeyPatch, task: Any) -> None:
    """Makes each batch of the task wait in vain for a lock the first time."""
    write_batch, seen = task.write_batch, set()

    def write_second_time(task: Any, operation: Operation, batch: Any, *arguments: Any) -> BatchCounts:
        if batch.cursor not in seen:
            seen.add(batch.cursor)
            raise OperationalError from errors.LockNotAvailable()
        counts: BatchCounts = write_batch(task, operation, batch, *arguments)
        return counts

    monkeypatch.setattr(task, "write_batch", write_second_time)


def test_no_batch_of_an_import_that_gives_up_is_lost(head: ActorRef, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is the file read again."""
    give_up_once(monkeypatch, ImportTask)
    operation = begin_import(head, store_file(build_file("csv"), head_user_id()))
    readings = count_calls(monkeypatch, ImportTask, "open_records")
    run_operations(operation)
    assert (operation.state, count_items(operation)) == ("done", (BOOK_COUNT, BOOK_COUNT, 0, 0, 0))
    assert (Book.objects.count(), len(readings)) == (BOOK_COUNT, 1)


def test_no_part_of_an_export_that_gives_up_is_lost(head: ActorRef, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is the workbook written again."""
    create_book(title="Emma")
    give_up_once(monkeypatch, ExportTask)
    operation = begin_export(head)
    workbooks = count_calls(monkeypatch, ExportTask, "iter_chunks")
    run_operations(operation)
    assert (operation.state, len(workbooks)) == ("done", 1)
    assert operation.export_chunks.count() > 2
    assert [record.values["title"] for record in read_exported(operation)] == ["Emma"]


def count_calls(monkeypatch: pytest.MonkeyPatch, task: Any, name: str) -> list[None]:
    """Returns a list that gets an item with each call of this method."""
    method = getattr(task, name)
    calls: list[None] = []

    def call(*arguments: Any) -> Any:
        calls.append(None)
        return method(*arguments)

    monkeypatch.setattr(task, name, call)
    return calls


def read_exported(operation: Operation) -> list[Any]:
    return read_records("xlsx", b"".join(iter_workbook(operation)))


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "postgresql", reason="The size of a database on PostgreSQL has no limit.")
def test_an_import_goes_on_after_the_disk_was_full(monkeypatch: pytest.MonkeyPatch) -> None:
    head, count = create_head_librarian(), 20
    books = [build_exported_book(id=number, isbn=build_isbn(number), title="T" * 900) for number in range(count)]
    operation = begin_import(head, store_file(write_books("csv", books), head_user_id()))
    with connection.cursor() as cursor:
        # Tests before have left free pages.
        cursor.execute("VACUUM")
        [pages] = cursor.execute("PRAGMA page_count").fetchone()
        # Until the connection is closed.
        cursor.execute(f"PRAGMA max_page_count = {pages + 10}")
    failures = count_calls(monkeypatch, worker, "release_operation")
    monkeypatch.setattr(worker, "RECONNECT_DELAY", 0.01)
    run_operations(operation)
    assert failures
    assert (operation.state, count_items(operation)) == ("done", (count, count, 0, 0, 0))
    assert Book.objects.count() == count


@pytest.mark.django_db(transaction=True)
def test_an_import_waits_for_a_change_of_its_book(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a lock the version of the book would refuse the batch, which is then decided again."""
    head, book = create_head_librarian(), create_book(title="Emma", isbn=build_isbn(1))
    data = write_books("csv", [build_exported_book(title="Persuasion", isbn=book.isbn)])
    operation = begin_import(head, store_file(data, head_user_id(), on_match="replace", take_doubtful=True))
    batches = count_calls(monkeypatch, ImportTask, "write")
    with transaction.atomic():
        change_book(book, title="Lady Susan")
        importing = start_concurrently(run_operations)
    importing.result()
    run_operations(operation)
    assert (operation.state, operation.changed, len(batches)) == ("done", 1, 1)
    assert (Change.objects.latest("pk").before or {})["title"] == "Lady Susan"


def test_a_workbook_with_missing_parts_is_not_done(head: ActorRef) -> None:
    create_book()
    operation = begin_export(head)
    runner = do_steps(operation, 2)
    operation.export_chunks.get(number=1).delete()
    while runner.advance():
        pass
    operation.refresh_from_db()
    assert (operation.state, operation.error) == ("failed", "Parts of the workbook are missing. Export it again.")


@pytest.mark.parametrize(
    ("steps", "changes", "error"),
    [
        (2, {"cursor": BOOK_COUNT}, "Not each record of the file was read once."),
        (1, {"last": BOOK_COUNT + 1}, "The file ends before its last record."),
        # What is behind the last one is not read.
        (1, {"last": 3, "matched": 3}, ""),
    ],
)
def test_each_record_is_read_once(head: ActorRef, steps: int, changes: dict[str, int], error: str) -> None:
    operation = begin_import(head, store_file(build_file("csv"), head_user_id()))
    runner = do_steps(operation, steps)
    Operation.objects.filter(pk=operation.pk).update(**changes)
    while runner.advance():
        pass
    operation.refresh_from_db()
    assert (operation.state, operation.error) == ("failed" if error else "done", error)
    assert error or (count_items(operation), Book.objects.count()) == ((3, 3, 0, 0, 0), 3)
