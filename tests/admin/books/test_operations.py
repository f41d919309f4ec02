"""The bulk edit of a list, from the form over the preview to the page of the operation, which cancels and undoes it."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core import signing
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from books.admin.operations.descriptions import describe_outcome
from books.history.actors import get_or_create_actor
from books.models import Actor, Book, Change, Operation, OperationProblem
from books.operations.edits import Edit
from tests.support.admin_pages import follow_link, list_badges, read_inputs, read_text, read_words
from tests.support.books_admin import LIST, RECENT_CHANGES, change_book, create_book
from tests.support.operations import begin_edit, create_head_librarian, do_edit, run_operations

BULK_EDIT = f"{LIST}bulk_edit/"
OPERATIONS = f"{LIST}operations/"
UNDO_BUTTON = ">Undo</button>"
SET_LENT = {"change": "set", "availability": "lent"}


def preview(client: Client, query: str = "", **form: Any) -> Any:
    return client.post(f"{BULK_EDIT}?{query}", form)


def confirm(client: Client, page: Any, query: str = "", **form: Any) -> Any:
    return client.post(f"{BULK_EDIT}?{query}", {**read_inputs(read_text(page)), **form}, follow=True)


def post(client: Client, operation: Operation, action: str) -> Any:
    return client.post(f"{OPERATIONS}{operation.pk}/{action}/", follow=True)


def begin_as(user: User, edit: Edit) -> Operation:
    return begin_edit(get_or_create_actor(Actor.Channel.OPERATION, user_id=user.pk), edit)


def test_the_books_of_a_list_are_edited_after_a_preview(head: Client) -> None:
    for number in range(2):
        create_book(title=f"Emma <{number}>", genre="Novel")
    create_book(title="Emma", genre="novel", year=-1), create_book(title="Persuasion", genre="Poem")
    page = follow_link(head, head.get(f"{LIST}?q=emma&genre=novel&sort=-year"), "Edit all of these")
    assert "3 books" in read_text(page)
    question = preview(head, "q=emma&genre=novel", change="set", genre="Fiction", availability="", year="-1")
    words = read_words(question)
    assert "Find: emma, Genre is “novel”" in words
    assert "3 books" in words
    assert "3 books change." in words
    assert "Meanwhile" not in words
    assert "Emma &lt;0&gt;" in words
    # Another release may read it during an upgrade.
    signed = signing.loads(read_inputs(read_text(question))["question"], salt="books.bulk_edit")
    assert signed[1].keys() == {"form", "values"}
    assert Book.objects.filter(genre="Fiction").count() == 0
    page = confirm(head, question, "q=emma&genre=novel")
    assert "It begins in a moment." in read_text(page)
    run_operations()
    assert Book.objects.filter(genre="Fiction", year=-1).count() == 3
    operation = Operation.objects.get()
    page = head.get(f"{OPERATIONS}{operation.pk}/")
    assert list_badges(page) == ["done"]
    assert "Genre becomes “Fiction”" in read_text(page)
    assert "berta</a>" in read_text(page)
    assert "Books (3)" in read_text(follow_link(head, page, "All of them in the list"))


def test_a_text_is_replaced_and_what_cannot_be_is_counted(head: Client) -> None:
    create_book(isbn="1-1"), create_book(isbn="11"), create_book(isbn="2-2"), create_book(isbn="-")
    question = preview(head, change="replace", member="isbn", find="-", replacement="")
    words = read_words(question)
    assert "1 book changes." in words
    assert "1 book needs no change." in words
    assert "Edit 1 book" in words
    assert "another one has or gets its new ISBN" in words
    assert "its text would be empty" in words
    confirm(head, question)
    run_operations()
    assert sorted(Book.objects.values_list("isbn", flat=True)) == ["-", "1-1", "11", "22"]
    page = head.get(f"{OPERATIONS}{Operation.objects.get().pk}/")
    assert "another book has the ISBN" in read_text(page)


def test_books_are_deleted_and_the_deletion_is_undone(head: Client) -> None:
    book = create_book(title="Emma")
    question = preview(head, "q=emma", change="delete")
    assert "Delete 1 book" in read_text(question)
    assert book.isbn in read_text(question)
    confirm(head, question, "q=emma")
    run_operations()
    assert not Book.objects.exists()
    operation = Operation.objects.get()
    assert UNDO_BUTTON in read_text(head.get(f"{OPERATIONS}{operation.pk}/"))
    page = post(head, operation, "undo")
    assert list_badges(head.get(f"{OPERATIONS}{operation.pk}/")) == ["being undone"]
    assert f'It undoes <a href="{OPERATIONS}{operation.pk}/">1 book deleted</a>' in read_text(page)
    run_operations()
    assert Book.objects.get().pk == book.pk
    assert UNDO_BUTTON not in read_text(head.get(f"{OPERATIONS}{operation.pk}/"))
    assert "It is undone already." in read_text(post(head, operation, "undo"))


def test_what_is_undone_says_so_and_leads_to_what_undid_it(head: Client, berta: User) -> None:
    create_book(year=1)
    edit = do_edit(get_or_create_actor(Actor.Channel.OPERATION, user_id=berta.pk), Edit({"year": 2}))
    post(head, edit, "undo")
    run_operations()
    undo = Operation.objects.latest("pk")
    link, page = f'<a href="{OPERATIONS}{undo.pk}/">undone</a>', f"{OPERATIONS}{edit.pk}/"
    for address in (OPERATIONS, page, RECENT_CHANGES, f"{RECENT_CHANGES}?operation={edit.pk}", "/admin/"):
        assert read_text(head.get(address)).count(link) == 1, address
    post(head, undo, "undo")
    run_operations()
    # The edit counts again, so its own state is "done".
    assert list_badges(head.get(page)) == ["done"]
    assert f'{OPERATIONS}{Operation.objects.latest("pk").pk}/">undone</a>)' in read_text(head.get(page))
    assert [link in read_text(head.get(address)) for address in (OPERATIONS, RECENT_CHANGES, "/admin/")] == [False] * 3


def test_a_form_that_is_not_valid_comes_back(head: Client) -> None:
    create_book()
    forms: list[tuple[dict[str, str], str]] = [
        ({}, "This field is required."),
        ({"change": "set"}, "Write at least one new value."),
        ({"change": "set", "title": "\u3000"}, "Write something besides blanks."),
        ({"change": "set", "year": "1e9999"}, "Enter a whole number."),
        ({"change": "set", "genre": "a\0b"}, "Null characters are not allowed."),
        ({"change": "set", "availability": "gone"}, "Select a valid choice."),
        ({"change": "replace", "member": "title", "find": ""}, "Write the text to be replaced."),
        ({"change": "replace", "member": "year", "find": "1"}, "Select a valid choice."),
        ({"change": "burn"}, "Select a valid choice."),
    ]
    assert [form for form, error in forms if error not in read_text(preview(head, **form))] == []
    # The list ignores a filter that is not valid, and shows all books.
    response = head.post(f"{BULK_EDIT}?year_from=x", SET_LENT, follow=True)
    assert "cannot read a filter of the list" in read_text(response)
    assert not Operation.objects.exists()


def test_a_double_click_begins_one_operation(head: Client, berta: User) -> None:
    create_book()
    question = preview(head, **SET_LENT)
    first, second = confirm(head, question), confirm(head, question)
    assert first.redirect_chain == second.redirect_chain
    assert Operation.objects.count() == 1
    cara = User.objects.create_user("cara", is_staff=True)
    cara.groups.set(berta.groups.all())
    head.force_login(cara)
    # What another person sends is no double click, whatever it repeats.
    confirm(head, question)
    assert list(Operation.objects.order_by("pk").values_list("actor__user_name", flat=True)) == ["berta", "cara"]


def test_it_asks_again_if_the_number_is_another_one_by_then(head: Client) -> None:
    create_book()
    question = preview(head, **SET_LENT)
    create_book()
    second_question = confirm(head, question)
    assert "the number of books has changed" in read_text(second_question)
    assert not Operation.objects.exists()
    confirm(head, second_question)
    assert Operation.objects.count() == 1


def test_for_many_books_one_types_their_number_and_may_leave_out_events(
    head: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("books.admin.operations.bulk_edit.MAX_ANNOUNCED_ALWAYS", 1)
    create_book(), create_book()
    question = preview(head, **SET_LENT)
    assert "Type 2 to go on" in read_text(question)
    assert "Tell no app" in read_text(question)
    again = confirm(head, question, typed="3")
    assert "Type the number of the books to go on." in read_text(again)
    assert not Operation.objects.exists()
    page = confirm(head, again, typed=" 2", silent="on")
    assert "Were told nothing" in read_text(page)
    assert Operation.objects.filter(parameters__events=False).count() == 1


def test_a_list_action_on_too_many_books_becomes_an_operation(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("books.admin.operations.list_actions.MAX_BOOKS", 1)
    books = [create_book(title="Emma") for _ in range(2)]
    create_book(title="Persuasion")
    form = {"action": "mark_lent", "_selected_action": [books[0].pk], "select_across": "1", "index": "0"}
    question = head.post(f"{LIST}?q=emma", form)
    assert "2 books" in read_text(question)
    assert "Availability becomes “lent”" in read_text(question)
    assert "Find and replace" not in read_text(question)
    confirm(head, question, "q=emma")
    run_operations()
    assert Book.objects.filter(available=False).count() == 2
    form = {"action": "delete_books", "_selected_action": [book.pk for book in books], "index": "0"}
    assert "more than 1 books" in read_text(head.post(f"{LIST}?q=emma", form, follow=True))


def test_a_list_action_is_undone_in_its_message(head: Client) -> None:
    pks = [create_book(title=title).pk for title in ("Emma", "Persuasion")]
    form = {"action": "delete_books", "_selected_action": pks, "index": "0", "confirmed": "2"}
    undo_page = press_undo(head, head.post(LIST, form, follow=True))
    assert read_words(undo_page).count("Undo: 2 books")
    run_operations()
    assert Book.objects.filter(pk__in=pks).count() == 2


def test_a_deletion_is_undone_in_its_message(librarian: Client) -> None:
    book = create_book(title="Emma")
    page = librarian.post(f"{LIST}{book.pk}/delete/", {"post": "yes"}, follow=True)
    assert "The book “Emma” is restored." in read_text(press_undo(librarian, page))
    assert Book.objects.get().pk == book.pk


def test_the_message_offers_no_undo_to_whom_it_would_refuse(db: None, client: Client) -> None:
    user = User.objects.create_user("cara", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_book", "change_book"]))
    client.force_login(user)
    page = client.post(LIST, {"action": "mark_lent", "_selected_action": [create_book().pk], "index": "0"}, follow=True)
    assert "1 book is now lent." in read_words(page)
    assert "formaction" not in read_text(page)


def press_undo(client: Client, page: Any) -> Any:
    """Sends the form of the messages to the address of the button in the message."""
    [address] = re.findall(r'<button form="message-form" formaction="([^"]+)"', read_text(page))
    assert '<form id="message-form" method="post"><input type="hidden" name="csrfmiddlewaretoken"' in read_text(page)
    return client.post(address, follow=True)


def test_what_an_undo_left_is_listed(head: Client) -> None:
    book = create_book(year=1)
    operation = do_edit(create_head_librarian(), Edit({"year": 2, "genre": "Poem"}))
    change_book(book, year=3)
    post(head, operation, "undo")
    run_operations()
    page = head.get(f"{OPERATIONS}{Operation.objects.latest('pk').pk}/")
    assert f'<a href="{LIST}{book.pk}/history/">Book {book.pk}</a></th><td>changed since: Year' in read_text(page)
    assert "changed since 1" in read_words(page)


def test_problems_are_listed_in_pages(head: Client, berta: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("books.admin.operations.descriptions.PAGE_SIZE", 2)
    operation = begin_as(berta, Edit({"year": 2}))
    for subject in range(3):
        OperationProblem.objects.create(operation=operation, subject=subject, reason="changed_since")
    page = head.get(f"{OPERATIONS}{operation.pk}/")
    assert [book.text for book, _reason in page.context["problems"]] == ["Book 0", "Book 1"]
    assert page.context["reasons"] == [("changed since", 3)]
    page = follow_link(head, page, "Next page")
    assert [book.text for book, _reason in page.context["problems"]] == ["Book 2"]
    assert head.get(f"{OPERATIONS}{operation.pk}/?cursor={'9' * 40}").status_code == 200


def test_each_kind_words_its_own_numbers() -> None:
    edited = ["1,000 books changed", "2 needed no change", "1 left as it was", "3 no longer matched"]
    imported = ["3 books added", "2 books changed", "1 record that changes nothing", "7 records not imported"]
    outcomes: list[tuple[str, tuple[int | None, ...], list[str]]] = [
        ("edit", (1000, 2, 1, 3), edited),
        ("mark", (1, 0, 0, 0), ["1 book changed"]),
        ("mark", (0, 5, 0, 0), ["5 needed no change"]),
        ("delete", (300, 0, 0, 0), ["300 books deleted"]),
        ("export", (0, 292, 0, 0), ["292 books written"]),
        ("merge", (2, None, None, None), ["two books became one"]),
        ("undo", (298, 0, 2, 0), ["298 put back", "2 left because somebody changed them since"]),
        ("undo", (0, 0, 0, 0), ["0 put back"]),
        ("import", (5, 1, 7, 0), imported),
        (
            "import check",
            (0, 1, 7, 0),
            ["3 books to add", "2 books to change", "1 record that changes nothing", "7 records not imported"],
        ),
        ("import preview", (0, 1, 0, 0), []),
        ("bulk", (None, None, None, None), []),
    ]
    names = ("changed", "unchanged", "refused", "missed")
    for kind, numbers, words in outcomes:
        result = {"counts": {"new": 3, "changed": 2, "left": 1}} if kind.startswith("import") else None
        operation = Operation(kind=kind, result=result, **dict(zip(names, numbers, strict=True)))
        assert describe_outcome(operation) == words, kind


def test_the_progress_is_shown_and_an_operation_can_be_cancelled(head: Client, berta: User) -> None:
    create_book()
    operation = begin_as(berta, Edit({"year": 1}))
    Operation.objects.update(
        state="running",
        matched=100,
        changed=20,
        unchanged=5,
        started_at=timezone.now() - timedelta(seconds=50),
    )
    page = read_text(head.get(f"{OPERATIONS}{operation.pk}/"))
    assert 'value="25" max="100"' in page
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in page
    progress = head.get(f"{OPERATIONS}{operation.pk}/progress/").json()
    assert (progress["done"], progress["matched"], progress["is_under_way"]) == (25, 100, True)
    assert progress["message"] in ("About 2 minutes left.", "About 3 minutes left.")
    index = read_text(head.get("/admin/"))
    assert "Under way" in index
    assert 'value="25" max="100"' in index
    assert "cancelled" in list_badges(post(head, operation, "cancel"))
    assert "Under way" not in read_text(head.get("/admin/"))
    assert "The operation has ended" not in read_text(post(head, operation, "cancel"))


def test_the_undo_of_an_expired_operation_is_shown(head: Client, berta: User) -> None:
    create_book(year=1)
    edit = do_edit(get_or_create_actor(Actor.Channel.OPERATION, user_id=berta.pk), Edit({"year": 2}))
    post(head, edit, "undo")
    undo = Operation.objects.latest("pk")
    Operation.objects.filter(pk=edit.pk).delete()
    Change.objects.filter(operation_id=edit.pk).update(operation_id=None)
    run_operations(undo)
    assert (undo.state, undo.matched) == ("done", 0)
    assert list_badges(head.get(f"{OPERATIONS}{undo.pk}/")) == ["done"]


def test_a_filter_of_the_interface_is_shown_as_it_was_sent(head: Client) -> None:
    """What its names mean there is not what they mean in the list."""
    operation = begin_edit(create_head_librarian(), Edit({"year": 1}), genre="Sci-Fi", author="é")
    assert "Genre: Sci-Fi, Author: é" in read_words(head.get(f"{OPERATIONS}{operation.pk}/"))


def test_a_worker_that_does_not_run_is_noticed(head: Client, berta: User) -> None:
    operation = begin_as(berta, Edit({"year": 1}))
    Operation.objects.update(created_at=timezone.now() - timedelta(seconds=11))
    assert "work in the background has stopped" in read_text(head.get(f"{OPERATIONS}{operation.pk}/"))


def test_operations_are_listed_in_pages(head: Client, berta: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("books.admin.operations.views.PAGE_SIZE", 2)
    operations = [begin_as(berta, Edit({"year": year})) for year in range(3)]
    page = head.get(OPERATIONS)
    assert [row["operation"].pk for row in page.context["operations"]] == [operations[2].pk, operations[1].pk]
    page = follow_link(head, page, "Older")
    assert [row["operation"].pk for row in page.context["operations"]] == [operations[0].pk]
    for odd in ("x", "-1", "9" * 40, "%00"):
        assert head.get(f"{OPERATIONS}?cursor={odd}").status_code == 200


def test_librarians_edit_no_list_and_end_only_what_they_began(librarian: Client, astrid: User, berta: User) -> None:
    create_book()
    assert "Edit all of these" not in read_text(librarian.get(LIST))
    assert librarian.get(BULK_EDIT).status_code == 403
    assert preview(librarian, **SET_LENT).status_code == 403
    others, own = begin_as(berta, Edit({"year": 1})), begin_as(astrid, Edit({"year": 2}))
    page = read_text(librarian.get(f"{OPERATIONS}{others.pk}/"))
    assert ">Cancel</button>" not in page
    assert [post(librarian, others, action).status_code for action in ("cancel", "undo")] == [403, 403]
    assert list_badges(post(librarian, own, "cancel")) == ["cancelled"]
    assert librarian.get(f"{OPERATIONS}{own.pk}/cancel/").status_code == 405
    assert librarian.get(f"{OPERATIONS}{own.pk + 1}/").status_code == 404


def test_who_sees_no_history_sees_the_own_operations_only(client: Client, berta: User, db: None) -> None:
    clerk = User.objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.add(*Permission.objects.filter(codename__in=["change_book"]))
    client.force_login(clerk)
    own, others = begin_as(clerk, Edit({"year": 1})), begin_as(berta, Edit({"year": 1}))
    Operation.objects.filter(pk=own.pk).update(state="done", finished_at=Now(), next_at=None)
    addresses = [f"{OPERATIONS}{operation.pk}/{page}" for operation in (own, others) for page in ("", "progress/")]
    assert [client.get(address).status_code for address in [*addresses, OPERATIONS]] == [200, 200, 403, 403, 403]
    assert post(client, own, "undo").status_code == 403
    # Who may edit but not delete is not even shown a preview of a deletion.
    clerk.user_permissions.add(Permission.objects.get(codename="bulk_edit_books"))
    assert [preview(client, change="delete").status_code, preview(client, **SET_LENT).status_code] == [403, 200]
