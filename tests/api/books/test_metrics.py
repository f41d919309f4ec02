"""What metrics say of operations."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from books.models import Operation
from books.operations.edits import Edit
from books.operations.lifecycle import cancel_operation
from books.operations.metrics import read_operations
from library_site.jobs.leases import release_row
from tests.support.books_admin import create_book
from tests.support.metrics import read_samples
from tests.support.operations import begin_edit, claim_runner, create_head_librarian, run_operations


def test_operations_count_until_they_are_done(db: None) -> None:
    create_book()
    head = create_head_librarian()
    operations = [begin_edit(head, Edit({"available": False})) for _ in range(3)]
    Operation.objects.filter(pk=operations[0].pk).update(next_at=Now() - timedelta(minutes=5))
    samples = read_samples(read_operations())
    assert samples.pop(("operations_overdue_seconds",)) == pytest.approx(300, abs=60)
    assert samples == {("operations", "waiting"): 3, ("operations", "running"): 0}
    runner = claim_runner()
    runner.advance()
    cancel_operation(operations[1].pk)
    samples = read_samples(read_operations())
    assert samples.pop(("operations_overdue_seconds",)) == pytest.approx(0, abs=60)
    assert samples == {("operations", "waiting"): 1, ("operations", "running"): 1}
    release_row(runner.operation)
    run_operations()
    assert set(read_samples(read_operations()).values()) == {0}
