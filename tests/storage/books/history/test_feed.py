"""The changes of all books, of which those of an operation are one item."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from books.history.change_pages import Entry, Filters, read_recent_page
from books.history.feed import read_feed
from books.history.loans import LENT, NO_LOAN, TAKEN_BACK, find_loan
from books.models import Actor, Change, Operation
from library_site.db.keyset import Start
from tests.support.history import explain

# The rows of these tests describe no changes of books.
pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.unrecorded]

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
EDIT, LEND = {"year": 1815}, {"available": False}


def add_actor(name: str) -> Actor:
    return Actor.objects.create(channel="admin", identity=name, user_name=name)


def add_operation(actor: Actor) -> int:
    return Operation.objects.create(kind="edit", actor=actor, created_at=NOON).pk


@pytest.fixture
def ada() -> Actor:
    """Ada changes single books while two operations of hers and one of Bob change others."""
    ada, bob, chance = add_actor("ada"), add_actor("bob"), Random(7)  # noqa: S311  # test data
    operations = [(add_operation(ada), ada, LEND), (add_operation(ada), ada, EDIT), (add_operation(bob), bob, EDIT)]
    rows: list[Change] = []
    for second in range(60):
        at = NOON + timedelta(seconds=second)
        operation, actor, after = (None, ada, LEND) if chance.random() < 0.3 else operations[second // 20]
        rows += [
            Change(
                book_id=len(rows) + number, version=1, kind=2, at=at, actor=actor, operation_id=operation, after=after
            )
            for number in range(1 if operation is None else chance.randint(1, 5))
        ]
    Change.objects.bulk_create(rows)
    return ada


def walk(filters: Filters, limit: int) -> Iterator[Entry]:
    start: Start | None = Start()
    while start:
        page = read_feed(filters, start, limit)
        yield from page.rows
        start = Start(page.next_key) if page.next_key else None


@pytest.mark.usefixtures("ada")
def test_each_single_change_and_the_newest_of_each_operation_are_there_once() -> None:
    for filters in (
        Filters(),
        Filters(user="ada"),
        Filters(channel="admin"),
        Filters(kind=Change.Kind.CHANGED, loan=LENT),
        Filters(kind=Change.Kind.CHANGED, loan=NO_LOAN),
        Filters(since=NOON + timedelta(seconds=10), until=NOON + timedelta(seconds=30)),
        Filters(kind=Change.Kind.DELETED),
    ):
        operations: set[int | None] = set()
        expected = []
        for entry in read_recent_page(filters, Start(), 1_000).rows:
            if entry.operation_id not in operations:
                expected.append(entry)
            operations |= {entry.operation_id} - {None}
        for limit in (3, 100):
            assert list(walk(filters, limit)) == expected, (filters, limit)


def test_the_changes_of_a_large_operation_are_not_read_one_by_one(ada: Actor) -> None:
    """One step leads over all changes of an operation with the same time."""
    operation = add_operation(ada)
    late = NOON + timedelta(days=1)
    Change.objects.bulk_create(
        Change(book_id=pk, version=2, kind=2, at=late, actor=ada, operation_id=operation, after=EDIT)
        for pk in range(3_000)
    )
    if connection.vendor == "postgresql":
        connection.cursor().execute("ANALYZE books_change")
    with CaptureQueriesContext(connection) as queries:
        first, second, *_ = read_feed(Filters(), Start(), 2).rows
    assert (first.operation_id, find_loan(second.after)) == (operation, "")
    [steps] = [query["sql"] for query in queries if "RECURSIVE" in query["sql"]]
    plan = explain(steps)
    assert "change_by_time" in plan
    assert not any(text in plan for text in ("Seq Scan on books_change", "SCAN books_change\n", "Sort  ("))


@pytest.mark.usefixtures("ada")
def test_few_loans_are_found_by_their_index() -> None:
    reader = add_actor("reader")
    Change.objects.bulk_create(
        Change(book_id=pk, version=2, kind=2, at=NOON, actor=reader, after=EDIT) for pk in range(3_000)
    )
    if connection.vendor == "postgresql":
        connection.cursor().execute("ANALYZE books_change")
    for loan in (LENT, TAKEN_BACK):
        with CaptureQueriesContext(connection) as queries:
            read_feed(Filters(kind=Change.Kind.CHANGED, loan=loan), Start(), 2)
        [steps] = [query["sql"] for query in queries if "RECURSIVE" in query["sql"]]
        assert explain(steps).count("change_of_loan") == 3, loan


def test_the_newest_change_of_an_operation_tells_whether_it_is_a_loan() -> None:
    """Its newest change of a book that stays: a book that the operation adds later is no matter."""
    actor = add_actor("ada")
    lent, edited = add_operation(actor), add_operation(actor)
    Change.objects.bulk_create(
        Change(
            book_id=pk,
            version=1,
            kind=kind,
            at=NOON + timedelta(seconds=operation),
            actor=actor,
            operation_id=operation,
            after=after,
        )
        for pk, (operation, kind, after) in enumerate(
            [(lent, 2, LEND), (lent, 1, None), (edited, 2, LEND), (edited, 2, EDIT)]
        )
    )
    filters = {loan: Filters(kind=Change.Kind.CHANGED, loan=loan) for loan in (LENT, NO_LOAN)}
    found = {loan: [entry.operation_id for entry in walk(filters[loan], 5)] for loan in filters}
    assert found == {LENT: [lent], NO_LOAN: [edited]}
