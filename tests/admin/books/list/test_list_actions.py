"""Actions on many books: which ask first, what the question shows, and that no more books are changed than it said."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from books.admin.operations import list_actions
from books.admin.operations.list_actions import DELETE_ACTION, MARK_LENT, ListAction
from books.models import Book, Change, Operation
from books.operations.selection_tasks import run_small_operation
from tests.support.admin_pages import read_inputs, read_text
from tests.support.books_admin import LIST, change_book, create_book, find_anybody
from tests.support.concurrency import start_concurrently

ACROSS = {"select_across": "1", "index": "0"}


def submit(client: Client, action: str, *books: Book, query: str = "", **form: Any) -> Any:
    values = {"action": action, "_selected_action": [book.pk for book in books], **form}
    return client.post(f"{LIST}{query}", values)


def answer_question(client: Client, question: Any, query: str = "") -> Any:
    return client.post(f"{LIST}{query}", read_inputs(read_text(question)), follow=True)


def count_lent() -> int:
    return Book.objects.filter(available=False).count()


def test_books_of_all_pages_are_marked_after_a_question(librarian: Client) -> None:
    books = [create_book(title=f"<Emma {number}>", isbn=f"E-{number}") for number in range(3)]
    change_book(books[0], available=False)
    create_book(title="Persuasion")
    question = submit(librarian, "mark_lent", books[2], query="?q=emma", **ACROSS)
    page = read_text(question)
    assert ["3 books" in page, "1 book needs no change." in page, "&lt;Emma 2&gt;" in page] == [True] * 3
    assert ["&lt;Emma 0&gt;" in page, "Persuasion" in page] == [False] * 2
    assert "can be undone" in page
    assert count_lent() == 1
    assert "2 books are now lent." in read_text(answer_question(librarian, question, "?q=emma"))
    assert count_lent() == 3
    assert Change.objects.filter(operation__kind="mark").count() == 2


def test_a_deletion_always_asks_and_shows_isbns(librarian: Client) -> None:
    book, _ = create_book(isbn="E-1"), create_book()
    question = submit(librarian, "delete_books", book, index="0")
    assert "E-1" in read_text(question)
    assert Book.objects.count() == 2
    assert "1 book is deleted." in read_text(answer_question(librarian, question))
    assert not Book.objects.filter(pk=book.pk).exists()
    assert Book.objects.count() == 1


def test_an_action_without_a_change_says_so(librarian: Client) -> None:
    lent, gone = create_book(available=False), create_book()
    gone.delete()
    for action, book, sentence in (
        ("mark_lent", lent, "Nothing had to change."),
        ("delete_books", gone, "What was selected is no longer there."),
    ):
        submit(librarian, action, book, index="0")
        assert sentence in read_text(librarian.get(LIST)), action
    assert not Operation.objects.exists()


def test_it_asks_again_if_the_list_has_other_books_by_then(librarian: Client) -> None:
    book = create_book()
    question = submit(librarian, "mark_lent", book, **ACROSS)
    create_book()
    second_question = answer_question(librarian, question)
    assert "the number of books has changed" in read_text(second_question)
    assert count_lent() == 0
    answer_question(librarian, second_question)
    assert count_lent() == 2


def test_a_failure_at_the_end_takes_all_changes_back(librarian: Client) -> None:
    """Else the books would be changed, and nobody could undo it."""
    book = create_book()

    def fail(execute: Callable[..., Any], sql: str, *arguments: Any) -> Any:
        if sql.startswith('UPDATE "books_operation"'):
            raise RuntimeError
        return execute(sql, *arguments)

    for action in ("mark_lent", "delete_books"):
        with connection.execute_wrapper(fail), pytest.raises(RuntimeError):
            submit(librarian, action, book, index="0", confirmed="1")
        assert (Book.objects.count(), count_lent(), Operation.objects.count()) == (1, 0, 0)


def test_more_books_than_the_limit_are_not_changed(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_actions, "MAX_BOOKS", 1)
    books = [create_book() for _ in range(2)]
    for action, across in (("mark_lent", "1"), ("delete_books", "yes")):
        form = {"action": action, "_selected_action": [books[0].pk], "select_across": across, "confirmed": "3"}
        response = librarian.post(LIST, form, follow=True)
        assert "Nothing was changed: these are more than 1 books" in read_text(response)
    assert (Book.objects.count(), count_lent()) == (2, 0)


def test_who_may_not_delete_books_cannot(db: None, client: Client) -> None:
    clerk = User.objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.add(*Permission.objects.filter(codename__in=["view_book", "change_book"]))
    client.force_login(clerk)
    submit(client, "delete_books", create_book(), confirmed="1")
    assert Book.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("action", [MARK_LENT, DELETE_ACTION], ids=["mark", "delete"])
def test_a_list_action_waits_for_a_change_and_finds_what_it_left(action: ListAction) -> None:
    """Else it would write a version that is there already, over values that are there no more."""
    with transaction.atomic():
        book = create_book(title="Ema")

    def act() -> None:
        run_small_operation(action.task(), action.parameters, [book.pk], find_anybody(), timezone.now())

    with transaction.atomic():
        change_book(book, title="Emma")
        acting = start_concurrently(act)
    acting.result()
    last = Change.objects.get(book_id=book.pk, version=3)
    if action is MARK_LENT:
        assert Book.objects.values_list("title", "available", "version").get() == ("Emma", False, 3)
    else:
        assert (last.before or {})["title"] == "Emma"
        assert not Book.objects.exists()
