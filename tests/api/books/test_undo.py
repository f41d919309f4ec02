"""The undo of operations: what goes back, what stays because somebody changed it since, and the undo of an undo."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from books.book.fields import FIELDS
from books.history.actors import ActorRef, record_operation
from books.models import Book, Change, Operation
from books.operations.edits import Edit
from books.operations.lifecycle import (
    NothingToUndo,
    OperationUnderWay,
    OperationUndone,
    cancel_operation,
)
from books.operations.worker import BATCH_SIZES
from books.writing import changes
from books.writing.merging import merge_books
from tests.support.books_admin import change_book, create_book, delete_book, find_anybody
from tests.support.operations import (
    begin_edit,
    begin_undo,
    claim_runner,
    count_items,
    do_deletion,
    do_edit,
    do_undo,
    list_problems,
    run_operations,
)


def list_fields() -> list[tuple[Any, ...]]:
    return list(Book.objects.order_by("pk").values_list("pk", *FIELDS, "created_at"))


def test_an_edit_is_undone_and_the_undo_is_undone(head: ActorRef) -> None:
    create_book(year=1), create_book(year=2), create_book(year=3)
    before = list_fields()
    edit = do_edit(head, Edit({"year": 2, "available": False}))
    after = list_fields()
    undo = do_undo(edit, head)
    assert (list_fields(), count_items(undo)) == (before, (3, 3, 0, 0, 0))
    redo = do_undo(undo, head)
    assert (list_fields(), count_items(redo)) == (after, (3, 3, 0, 0, 0))


def test_fields_that_somebody_changed_since_stay(head: ActorRef) -> None:
    edited = [create_book(year=1, genre="Novel") for _ in range(3)]
    edit = do_edit(head, Edit({"year": 2, "genre": "Poem"}))
    change_book(edited[0], year=3)
    change_book(edited[1], title="Emma", year=1, genre="Novel")
    delete_book(edited[2])
    undo = do_undo(edit, head)
    assert list(Book.objects.order_by("pk").values_list("title", "year", "genre")) == [
        ("Pride and Prejudice", 3, "Novel"),
        ("Emma", 1, "Novel"),
    ]
    assert sorted(list_problems(undo)) == [
        (edited[0].pk, "changed_since", "year"),
        (edited[2].pk, "deleted_since", ""),
    ]
    assert count_items(undo) == (3, 1, 1, 1, 0)


@pytest.mark.parametrize(
    ("edit", "values"),
    [
        (Edit({"available": False}), ({"available": True}, {"available": False})),
        (Edit({"genre": "Poem"}), ({"genre": "Essay"}, {"genre": "Poem"})),
        (Edit({}, "title", "Emma", "Ema"), ({"title": "Other"}, {"title": "Ema"})),
        (Edit({"isbn": "9780141439518"}), ({"isbn": "0141439513"}, {"isbn": "9780141439518"})),
    ],
)
def test_a_field_that_somebody_changed_since_stays_where_its_value_is_the_same_again(
    head: ActorRef, edit: Edit, values: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    """As of a book that was marked as lent, taken back, and lent to the next reader."""
    book, other_field = create_book(title="Emma"), next(iter(values[0]))
    operation = do_edit(head, edit)
    change_book(book, **values[0])
    change_book(book, **values[1])
    kept = list_fields()
    undo = do_undo(operation, head)
    assert (list_fields(), list_problems(undo)) == (kept, [(book.pk, "changed_since", other_field)])
    assert count_items(undo) == (1, 0, 0, 1, 0)


def test_a_field_that_somebody_changed_after_an_undo_stays(head: ActorRef) -> None:
    """The undo of the undo, and a second undo after a cancelled one, would both change it again."""
    undone, cancelled = create_book(title="Ema", year=1), create_book(title="Emma", year=1)
    undo = do_undo(do_edit(head, Edit({"year": 2}), title="Ema"), head)
    edit = do_edit(head, Edit({"year": 2}), title="Emma")
    cancel_part(begin_undo(edit, head), 1)
    for book, years in ((undone, (5, 1)), (cancelled, (5, 2))):
        change_book(book, year=years[0])
        change_book(book, year=years[1])
    for operation, book in ((undo, undone), (edit, cancelled)):
        assert list_problems(do_undo(operation, head)) == [(book.pk, "changed_since", "year")]
    assert [*Book.objects.order_by("pk").values_list("year", flat=True)] == [1, 2]


def test_a_change_that_was_undone_since_is_nobodys(head: ActorRef) -> None:
    """Several operations are undone one after the other, the last one first."""
    book = create_book(year=1)
    before = list_fields()
    added = create_book(begin_bulk(), year=1)
    bulk = Operation.objects.latest("pk")
    first = do_edit(head, Edit({"year": 2}))
    second = do_edit(head, Edit({"year": 3}))
    deletion = do_deletion(head)
    for operation in (deletion, second, first, bulk):
        undo = do_undo(operation, head)
        assert (undo.refused, list_problems(undo)) == (0, [])
    assert list_fields() == before
    assert {book.pk, added.pk} == {*Change.objects.values_list("book_id", flat=True)}


def test_a_change_whose_undo_was_undone_is_somebodys(head: ActorRef) -> None:
    book = create_book(year=1)
    first = do_edit(head, Edit({"year": 2}))
    do_undo(do_undo(do_edit(head, Edit({"year": 3})), head), head)
    change_by_operation = do_edit(head, Edit({"year": 2}))
    undo = do_undo(first, head)
    assert (list_problems(undo), change_by_operation.changed) == ([(book.pk, "changed_since", "year")], 1)
    assert Book.objects.get().year == 2


def test_the_kept_book_of_a_merge_keeps_what_somebody_changed_since(head: ActorRef) -> None:
    kept, other = create_book(title="Ema"), create_book(title="Emma")
    merge_books(kept.pk, {kept.pk: 1, other.pk: 1}, {"title": other.pk}, head, timezone.now())
    merge = Operation.objects.latest("pk")
    change_book(kept, title="Persuasion")
    change_book(kept, title="Emma")
    undo = do_undo(merge, head)
    assert [*Book.objects.order_by("pk").values_list("pk", "title")] == [(kept.pk, "Emma"), (other.pk, "Emma")]
    assert (list_problems(undo), count_items(undo)) == ([(kept.pk, "changed_since", "title")], (2, 1, 0, 1, 0))


def test_an_undo_takes_as_many_queries_for_one_book_as_for_many(head: ActorRef) -> None:
    counts = []
    for number in (1, 4):
        books = [create_book(genre=f"G{number}", year=1) for _ in range(number)]
        edit = do_edit(head, Edit({"year": 2}), genre=f"G{number}")
        do_undo(do_edit(head, Edit({"title": "Other"}), genre=f"G{number}"), head)
        for book in books:
            change_book(book, author="Somebody")
        with CaptureQueriesContext(connection) as queries:
            undo = do_undo(edit, head)
        assert undo.changed == number
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_books_that_were_restored_since_or_whose_isbn_is_in_use_stay(head: ActorRef) -> None:
    books = [create_book(isbn=f"I-{number}") for number in range(3)]
    deletion = do_deletion(head)
    changes.restore_book(books[0].pk, find_anybody(), timezone.now())
    changes.restore_book(books[1].pk, find_anybody(), timezone.now())
    delete_book(books[1])
    create_book(isbn="I-2")
    undo = do_undo(deletion, head)
    assert sorted(list_problems(undo)) == [
        (books[0].pk, "exists", ""),
        (books[1].pk, "exists", ""),
        (books[2].pk, "isbn_in_use", ""),
    ]
    assert sorted(Book.objects.values_list("isbn", flat=True)) == ["I-0", "I-2"]
    assert count_items(undo) == (3, 0, 0, 3, 0)


def test_books_that_were_added_together_are_deleted_unless_somebody_changed_them(head: ActorRef) -> None:
    now = timezone.now()
    actor = record_operation("import", find_anybody(), now)
    changed, deleted, _ = (create_book(actor) for _ in range(3))
    change_book(changed, year=1)
    change_book(changed, year=1813)
    delete_book(deleted)
    undo = do_undo(Operation.objects.latest("pk"), head)
    assert [book.pk for book in Book.objects.all()] == [changed.pk]
    assert list_problems(undo) == [(changed.pk, "changed_since", "")]
    assert count_items(undo) == (3, 1, 1, 1, 0)


@pytest.mark.parametrize("batch_size", [1, 9])
def test_several_changes_of_a_book_are_taken_back_one_by_one(
    head: ActorRef, monkeypatch: pytest.MonkeyPatch, batch_size: int
) -> None:
    """As a bulk request makes them: a book is added, changed and deleted, and another takes its isbn."""
    monkeypatch.setattr("books.operations.worker.BATCH_SIZES", dict.fromkeys(BATCH_SIZES, batch_size))
    kept = create_book(isbn="I-1")
    before = list_fields()
    actor = begin_bulk()
    change_book(kept, actor, isbn="I-2", year=1)
    added = create_book(actor, isbn="I-1")
    change_book(added, actor, year=2)
    delete_book(added, actor)
    delete_book(kept, actor)
    last = create_book(actor, isbn="I-2")
    bulk = Operation.objects.latest("pk")
    undo = do_undo(bulk, head)
    assert list_fields() == before
    assert (undo.refused, undo.changed) == (0, 6)
    redo = do_undo(undo, head)
    assert [(row[0], row[4]) for row in list_fields()] == [(last.pk, "I-2")]
    assert redo.refused == 0


def test_what_is_under_way_or_undone_or_changed_nothing_cannot_be_undone(head: ActorRef) -> None:
    create_book(year=1)
    edit = begin_edit(head, Edit({"year": 2}))
    with pytest.raises(OperationUnderWay):
        begin_undo(edit, head)
    run_operations(edit)
    undo = begin_undo(edit, head)
    with pytest.raises(OperationUndone):
        begin_undo(edit, head)
    cancel_operation(undo.pk)
    with pytest.raises(NothingToUndo):
        begin_undo(undo, head)
    do_undo(edit, head)
    with pytest.raises(OperationUndone):
        begin_undo(edit, head)
    assert Change.objects.count() == 3


def cancel_part(undo: Operation, steps: int) -> None:
    """Takes so many changes back, one by one, and cancels the undo."""
    runner = claim_runner()
    for _ in range(1 + steps):
        # A slow machine would make it larger.
        runner.batch_size = 1
        runner.advance()
    cancel_operation(undo.pk)


def begin_bulk() -> ActorRef:
    return record_operation("bulk", find_anybody(), timezone.now())


def add_all(head: ActorRef) -> None:
    bulk = begin_bulk()
    for _ in range(3):
        change_book(create_book(bulk), bulk, year=2)


@pytest.mark.parametrize(("change", "steps"), [(add_all, 3), (do_deletion, 2)])
def test_an_undo_goes_on_where_a_cancelled_one_ended(
    head: ActorRef, change: Callable[[ActorRef], object], steps: int
) -> None:
    create_book(available=False), create_book(), create_book()
    before = list_fields()
    change(head)
    operation, after = Operation.objects.latest("pk"), list_fields()
    cancel_part(first := begin_undo(operation, head), steps)
    undo = do_undo(operation, head)
    assert (list_fields(), list_problems(undo), undo.refused) == (before, [], 0)
    assert (first.refused, (undo.changed or 0) + (undo.unchanged or 0)) == (0, undo.matched)
    redo = do_undo(undo, head)
    redo_of_first = do_undo(first, head)
    assert (list_fields(), redo.refused, redo_of_first.refused) == (after, 0, 0)


@pytest.mark.parametrize("change", [add_all, do_deletion])
def test_what_an_undo_of_a_cancelled_undo_changed_is_nobodys(
    head: ActorRef, change: Callable[[ActorRef], object]
) -> None:
    create_book(), create_book(), create_book()
    before = list_fields()
    change(head)
    operation, after = Operation.objects.latest("pk"), list_fields()
    cancel_part(first := begin_undo(operation, head), 2)
    back = do_undo(first, head)
    assert (list_fields(), list_problems(back)) == (after, [])
    undo = do_undo(operation, head)
    assert (list_fields(), list_problems(undo)) == (before, [])


def test_what_somebody_did_after_a_cancelled_undo_stays(head: ActorRef) -> None:
    deleted, edited, restored, other = (create_book() for _ in range(4))
    deletion = do_deletion(head)
    changes.restore_book(other.pk, find_anybody(), timezone.now())
    cancel_part(begin_undo(deletion, head), 4)
    delete_book(deleted)
    change_book(edited, year=1)
    delete_book(restored)
    changes.restore_book(restored.pk, find_anybody(), timezone.now())
    undo = do_undo(deletion, head)
    assert sorted(list_problems(undo)) == [(deleted.pk, "deleted_since", ""), (other.pk, "exists", "")]
    assert list(Book.objects.order_by("pk").values_list("pk", "year")) == [
        (edited.pk, 1),
        (restored.pk, 1813),
        (other.pk, 1813),
    ]


def test_an_edit_of_a_book_that_somebody_deleted_after_a_cancelled_undo_is_refused(head: ActorRef) -> None:
    book = create_book(year=1)
    edit = do_edit(head, Edit({"year": 2}))
    cancel_part(begin_undo(edit, head), 1)
    delete_book(book)
    assert list_problems(do_undo(edit, head)) == [(book.pk, "deleted_since", "")]


def test_a_book_that_somebody_restored_after_an_undo_is_refused_by_its_undo(head: ActorRef) -> None:
    """What the first operation did came before the undo, and is none that takes its changes back."""
    added = create_book(begin_bulk())
    undo = do_undo(Operation.objects.latest("pk"), head)
    changes.restore_book(added.pk, find_anybody(), timezone.now())
    assert list_problems(do_undo(undo, head)) == [(added.pk, "exists", "")]


def test_a_change_of_a_book_that_the_operation_deleted_too_is_refused_with_the_deletion(head: ActorRef) -> None:
    book = create_book(isbn="I-1", year=1)
    bulk = begin_bulk()
    change_book(book, bulk, year=2)
    delete_book(book, bulk)
    create_book(isbn="I-1")
    undo = do_undo(Operation.objects.latest("pk"), head)
    assert (list_problems(undo), undo.refused) == (
        [(book.pk, "isbn_in_use", ""), (book.pk, "deleted_since", "")],
        2,
    )
