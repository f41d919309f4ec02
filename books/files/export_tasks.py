"""A worker task that writes the books of a list as a workbook. A workbook cannot be streamed."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import ceil
from os import SEEK_END
from tempfile import TemporaryFile
from typing import Any, BinaryIO, ClassVar, cast

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from books.files.exports import iter_pages
from books.files.formats.records import ExportedBook
from books.files.formats.registry import write_xlsx
from books.files.uploads import CHUNK_BYTES, KEPT_DAYS
from books.history.actors import ActorRef
from books.models import Book, ExportChunk, Operation
from books.operations.selection_tasks import get_selection
from books.operations.tasks import Batch, BatchCounts, OperationFailed, Plan, Sentences, Task, register_operation_kind
from library_site.db.integers import BIGINT_MAX
from library_site.jobs.leases import renew_lease

EXPORT = "export"


@register_operation_kind
class ExportTask(Task):
    """Writes the workbook to a temporary file, then stores it in chunks. Its keys are their numbers.

    If another worker continues, it writes the workbook again, because the books may have changed.
    """

    name = EXPORT
    label = gettext_lazy("workbook of a list")
    title = ngettext_lazy("workbook of %(count)s book", "workbook of %(count)s books", "number")
    sentences: ClassVar[Sentences] = {
        "unchanged": ngettext_lazy("%(count)s book written", "%(count)s books written", "number")
    }

    @classmethod
    def count_books(cls, operation: Operation) -> int:
        return operation.unchanged or 0

    def __init__(self) -> None:
        self.chunks: Iterator[tuple[int, bytes]] | None = None
        # The books, and the chunks of the workbook. All books are counted as done with the first chunk.
        self.book_count = self.chunk_count = 0

    def plan(self, operation: Operation) -> Plan:
        """The number of chunks is known only after the workbook is written."""
        return Plan(select_exported(operation).count(), 0, BIGINT_MAX)

    def read_batch(self, operation: Operation, limit: int) -> Batch:
        if self.chunks is None:
            self.chunks = self.iter_chunks(operation)
        chunk = next(self.chunks)
        return Batch(chunk[0], chunk)

    def iter_chunks(self, operation: Operation) -> Iterator[tuple[int, bytes]]:
        with TemporaryFile() as file:
            write_xlsx(self.iter_pages(operation), cast("BinaryIO", file))
            self.chunk_count = ceil(file.seek(0, SEEK_END) / CHUNK_BYTES)
            file.seek(0)
            yield from enumerate(iter(lambda: file.read(CHUNK_BYTES), b""), 1)

    def iter_pages(self, operation: Operation) -> Iterator[list[ExportedBook]]:
        for page in iter_pages(select_exported(operation)):
            self.book_count += len(page)
            renew_lease(operation)
            yield page

    def write_batch(self, operation: Operation, batch: Batch, actor: ActorRef, now: datetime) -> BatchCounts:
        number, content = batch.items
        is_first = number == 1
        if is_first:
            ExportChunk.objects.filter(operation=operation).delete()
            Operation.objects.filter(pk=operation.pk).update(unchanged=0, last=self.chunk_count)
        ExportChunk.objects.create(operation=operation, number=number, content=content, created_at=now)
        return BatchCounts(changed=0, unchanged=self.book_count if is_first else 0)

    def require_complete(self, operation: Operation) -> None:
        """Checks that all chunks are stored."""
        if operation.export_chunks.count() != operation.last:
            raise OperationFailed(_("Parts of the workbook are missing. Export it again."))


def select_exported(operation: Operation) -> QuerySet[Book]:
    return get_selection(operation).list_books()


def iter_workbook(operation: Operation) -> Iterator[bytes]:
    """Yields the chunks of a workbook, with one query for each."""
    numbers = list(ExportChunk.objects.filter(operation=operation).order_by("number").values_list("number", flat=True))
    for number in numbers:
        yield bytes(ExportChunk.objects.get(operation=operation, number=number).content)


def iter_expired(now: datetime) -> Iterator[tuple[str, QuerySet[Any]]]:
    """Yields the chunks of workbooks that are older than KEPT_DAYS."""
    yield "parts of exported workbooks", ExportChunk.objects.filter(created_at__lte=now - timedelta(days=KEPT_DAYS))
