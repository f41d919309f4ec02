"""Edits and deletions of many books: which books change, what is refused, and who is told."""

from typing import Any

import pytest

from books.book_values import BookValues
from books.history.actors import ActorRef
from books.models import Book, Change, Operation
from books.operations import selection_tasks, tasks
from books.operations.edits import Edit
from library_site.jobs.leases import release_row
from tests.support.books_admin import change_book, create_book, delete_book
from tests.support.operations import (
    begin_edit,
    claim_runner,
    count_items,
    do_edit,
    do_undo,
    list_problems,
    run_operations,
)
from webhooks.models import Event as StoredEvent


def test_matching_books_get_new_fields(head: ActorRef) -> None:
    books = [create_book(title="Emma", year=1815), create_book(title="Emma II", year=1900, genre="Sequel")]
    other = create_book(title="Persuasion", year=1817)
    operation = do_edit(head, Edit({"year": 1815, "genre": "Novel", "available": False}), title="emma")
    assert [(book.year, book.genre, book.available) for book in Book.objects.order_by("pk")] == [
        (1815, "Novel", False),
        (1815, "Novel", False),
        (other.year, other.genre, True),
    ]
    assert (operation.state, count_items(operation)) == ("done", (2, 2, 0, 0, 0))
    change = Change.objects.get(book_id=books[1].pk, version=2)
    assert (change.operation_id, change.actor_id) == (operation.pk, head.id)
    assert change.before == {"year": 1900, "genre": "Sequel", "available": True}


def test_a_text_is_replaced_wherever_it_is(head: ActorRef) -> None:
    create_book(title="Emma and emma and Emma")
    other = create_book(title="emma")
    operation = do_edit(head, Edit({}, "title", "Emma", "Ema"))
    assert sorted(Book.objects.values_list("title", flat=True)) == ["Ema and emma and Ema", other.title]
    assert Book.objects.get(title__startswith="Ema").title_folded == "ema and emma and ema"
    assert count_items(operation) == (2, 1, 1, 0, 0)


def test_what_would_be_blank_or_too_long_is_refused(head: ActorRef) -> None:
    blank, long = create_book(title="Blank", genre="aa"), create_book(title="Long", genre="a" * 150)
    operation = do_edit(head, Edit({}, "genre", "aa", ""), q="blank")
    assert list_problems(operation) == [(blank.pk, "invalid", "")]
    operation = do_edit(head, Edit({}, "genre", "a", "cc"), q="long")
    assert list_problems(operation) == [(long.pk, "invalid", "")]
    assert count_items(operation) == (1, 0, 0, 1, 0)


def test_an_isbn_that_another_book_has_is_refused(head: ActorRef) -> None:
    create_book(isbn="12")
    taken, free = create_book(isbn="1-2"), create_book(isbn="3-4")
    operation = do_edit(head, Edit({}, "isbn", "-", ""))
    assert sorted(Book.objects.values_list("isbn", flat=True)) == ["1-2", "12", "34"]
    assert list_problems(operation) == [(taken.pk, "isbn_in_use", "")]
    assert count_items(operation) == (3, 1, 1, 1, 0)
    assert Book.objects.get(pk=free.pk).version == 2


def test_books_that_are_added_later_are_not_edited(head: ActorRef, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation is about the books that are there when it starts."""
    monkeypatch.setattr("books.operations.worker.BATCH_SIZES", {"sqlite": 2, "postgresql": 2})
    monkeypatch.setattr(selection_tasks, "READ_AHEAD", 2)
    books = [create_book(year=1) for _ in range(3)]
    operation = begin_edit(head, Edit({"year": 2}))
    write_pairs = selection_tasks.write_pairs

    def write_and_add(*arguments: Any) -> list[int]:
        assert Book.objects.count() < 9, "Each batch has the book that the one before added."
        create_book(year=1)
        return write_pairs(*arguments)

    monkeypatch.setattr(selection_tasks, "write_pairs", write_and_add)
    run_operations(operation)
    assert count_items(operation) == (3, 3, 0, 0, 0)
    assert list(Book.objects.filter(year=2).order_by("pk")) == books


def test_the_numbers_add_up_where_books_come_to_match_meanwhile(head: ActorRef) -> None:
    create_book(genre="Novel", available=False)
    others = [create_book(genre="Poem") for _ in range(2)]
    create_book(genre="Novel")
    edit = begin_edit(head, Edit({"available": False}), genre="novel")
    runner = claim_runner()
    runner.advance()
    edit.refresh_from_db()
    assert edit.matched == 2
    for book in others:
        change_book(book, genre="Novel")
    release_row(runner.operation)
    run_operations(edit)
    assert count_items(edit) == (4, 3, 1, 0, 0)


def test_whether_events_are_sent_is_decided_when_an_operation_begins(
    head: ActorRef, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    request.node.add_marker("unannounced")
    monkeypatch.setattr("books.operations.tasks.MAX_ANNOUNCED_ALWAYS", 1)
    create_book(year=1)
    gone, before = create_book(), StoredEvent.objects.count()
    edit = begin_edit(head, Edit({"year": 2}), events=False)
    runner = claim_runner()
    runner.advance()
    delete_book(gone)
    release_row(runner.operation)
    run_operations(edit)
    undo = do_undo(edit, head)
    assert (edit.matched, undo.changed) == (1, 1)
    assert {*StoredEvent.objects.all()[before:].values_list("kind", flat=True)} == {"book.deleted"}


@pytest.mark.parametrize(("matched", "has_events"), [(1_000, True), (1_001, False)])
def test_a_thousand_books_are_always_announced(matched: int, has_events: bool) -> None:
    assert tasks.is_announced(Operation(matched=matched, parameters={"events": False})) is has_events
    assert tasks.is_announced(Operation(matched=matched, parameters={"events": True}))


def test_the_last_books_may_be_gone_when_their_turn_comes(head: ActorRef) -> None:
    kept, gone = create_book(), create_book()
    operation = begin_edit(head, Edit({"available": False}))
    runner = claim_runner()
    runner.advance()
    delete_book(gone)
    release_row(runner.operation)
    run_operations(operation)
    assert (operation.state, count_items(operation)) == ("done", (1, 1, 0, 0, 0))
    assert operation.cursor == operation.last == gone.pk
    assert list(Book.objects.filter(available=False)) == [kept]


def test_books_that_changed_after_they_were_read_are_looked_at_again(
    head: ActorRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One no longer matches, one was deleted, and one was changed and still matches."""
    lost, deleted, kept = (create_book(genre="Novel") for _ in range(3))
    lock = selection_tasks.lock_matching

    def change_and_lock(*arguments: Any) -> dict[int, BookValues]:
        change_book(lost, genre="Poem")
        delete_book(deleted)
        change_book(kept, year=1)
        return lock(*arguments)

    monkeypatch.setattr(selection_tasks, "lock_matching", change_and_lock)
    operation = do_edit(head, Edit({"available": False}), genre="novel")
    assert list_problems(operation) == [(lost.pk, "no_match", ""), (deleted.pk, "no_match", "")]
    assert count_items(operation) == (1, 1, 0, 0, 2)
    assert list(Book.objects.filter(available=False)) == [kept]
