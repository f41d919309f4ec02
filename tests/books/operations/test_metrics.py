"""What metrics say of operations."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from books.models import Operation
from books.operations.edits import Edit
from books.operations.metrics import read_operations
from tests.support.books_admin import create_book
from tests.support.operations import begin_edit, create_head_librarian, work_off


def read_samples() -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in read_operations()
        for sample in metric.samples
    }


def test_operations_count_until_they_are_done(db: None) -> None:
    create_book()
    operation = begin_edit(create_head_librarian(), Edit({"available": False}))
    Operation.objects.filter(pk=operation.pk).update(next_at=Now() - timedelta(minutes=5))
    samples = read_samples()
    assert samples.pop(("library_operations_overdue_seconds",)) == pytest.approx(300, abs=60)
    assert samples == {("library_operations", "waiting"): 1, ("library_operations", "running"): 0}
    work_off()
    assert set(read_samples().values()) == {0}
