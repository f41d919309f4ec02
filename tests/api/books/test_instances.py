"""Django's own ways to write books leave a version, history and events, or refuse and say what to call.

After each test `changes_are_announced_and_recorded` compares the triggers of the database with both.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

from books.models import Actor, Book, Change, UnrecordedWrite
from books.writing.instances import StaleBook
from tests.support.books import build_book
from tests.support.books_admin import change_book, create_book

pytestmark = pytest.mark.usefixtures("db")

ROOT = Path(__file__).parents[3]


def read_columns(book: Book) -> dict[str, Any]:
    """Returns what the instance says of each column, whether or not it is stored so."""
    return {name: value for name, value in vars(book).items() if not name.startswith("_")}


def save(book: Book, **options: Any) -> Book:
    book.save(**options)
    return book


def find_stored(book: Book) -> dict[str, Any]:
    return dict(Book.objects.filter(pk=book.pk).values().get())


def list_kinds(pk: int) -> list[tuple[int, int]]:
    return [*Change.objects.filter(book_id=pk).order_by("version").values_list("version", "kind")]


@pytest.mark.parametrize(
    "create",
    [
        lambda fields: Book.objects.create(**fields),
        lambda fields: save(Book(**fields)),
        lambda fields: async_to_sync(Book.objects.all().acreate)(**fields),
    ],
)
def test_a_new_book_has_history_and_event(create: Callable[[dict[str, Any]], Book]) -> None:
    book = create(build_book(isbn="978-0-306-40615-7", title="ÉMILE"))
    assert list_kinds(book.pk) == [(1, Change.Kind.CREATED)]
    assert read_columns(book) == find_stored(book)
    assert (book.version, book.isbn13, book.title_folded) == (1, "9780306406157", "émile")


@pytest.mark.parametrize(
    "change",
    [
        lambda book: book.save(),
        lambda book: book.save(force_update=True),
        lambda book: book.save(update_fields=["title"]),
        lambda book: async_to_sync(book.asave)(),
    ],
)
def test_a_changed_book_has_history_and_event(change: Callable[[Book], Any]) -> None:
    book = create_book()
    book.title = "Persuasion"
    change(book)
    change_row = Change.objects.get(book_id=book.pk, version=2)
    assert (change_row.before, change_row.after) == ({"title": "Pride and Prejudice"}, {"title": "Persuasion"})
    assert (find_stored(book)["title"], find_stored(book)["version"]) == ("Persuasion", 2)


def test_a_saved_book_has_what_the_library_decides() -> None:
    # What version 1 stored can stay: it accepts blank texts, which an instance does not.
    book = create_book(genre="")
    before, book.isbn, book.year = book.updated_at, "0-306-40615-2", "1814"
    book.save()
    assert read_columns(book) == find_stored(book)
    assert (book.version, book.isbn13, book.year, book.genre) == (2, "9780306406157", 1814, "")
    assert book.updated_at > before


@pytest.mark.parametrize("delete", [lambda book: book.delete(), lambda book: async_to_sync(book.adelete)()])
def test_a_deleted_book_has_history_and_event(delete: Callable[[Book], Any]) -> None:
    book = create_book()
    pk = book.pk
    assert delete(book) == (1, {"books.Book": 1})
    assert list_kinds(pk) == [(1, Change.Kind.CREATED), (2, Change.Kind.DELETED)]
    assert book.pk is None
    with pytest.raises(ValueError, match="without an id"):
        book.delete()


@pytest.mark.usefixtures("transactional_db")
def test_all_is_done_outside_a_transaction_by_one_actor() -> None:
    assert not connection.in_atomic_block
    book = Book.objects.create(**build_book())
    book.title = "Emma"
    book.save()
    pk, same = book.pk, Book.objects.get()
    book.delete()
    assert same.delete() == (0, {"books.Book": 0})
    assert list_kinds(pk) == [(1, 1), (2, 2), (3, 3)]
    actors = Change.objects.filter(book_id=pk).values_list("actor_id", "actor__channel", "actor__identity")
    assert [actor[1:] for actor in {*actors}] == [("command", "command - - - -")]


@pytest.mark.parametrize("options", [{}, {"force_update": True}, {"update_fields": ["year"]}])
def test_an_instance_that_others_changed_since_is_refused(options: dict[str, Any]) -> None:
    book = create_book()
    change_book(book, title="Emma")
    book.year = 1815
    with pytest.raises(StaleBook, match=rf"^Book {book.pk} is at version 2, and was loaded at version 1\. Load it"):
        book.save(**options)
    assert (find_stored(book)["title"], find_stored(book)["year"]) == ("Emma", 1813)
    book.refresh_from_db()
    book.year = 1815
    book.save()
    assert (find_stored(book)["title"], find_stored(book)["year"], book.version) == ("Emma", 1815, 3)


def test_update_fields_leave_the_other_edits_unsaved() -> None:
    book = create_book()
    book.title, book.year = "Emma", 1815
    book.save(update_fields=[])
    assert find_stored(book)["title"] == "Pride and Prejudice"
    book.save(update_fields=["title", "title_folded", "updated_at"])
    assert (find_stored(book)["title"], find_stored(book)["year"], book.year) == ("Emma", 1813, 1815)
    book.save()
    assert (find_stored(book)["year"], book.version) == (1815, 3)


def test_the_time_of_the_addition_never_changes() -> None:
    book = create_book()
    book.created_at, book.title = book.created_at - timedelta(days=1), "Emma"
    with pytest.raises(UnrecordedWrite, match="never changes it"):
        book.save()
    assert find_stored(book)["title"] == "Pride and Prejudice"


def test_a_copy_gets_its_id_from_the_database() -> None:
    book = create_book()
    pk, created_at, book.pk, book.isbn = book.pk, book.created_at, None, "a copy"
    book.save()
    assert (book.pk > pk, book.version, book.created_at > created_at) == (True, 1, True)


def test_a_deleted_book_is_not_saved_again() -> None:
    book, same = create_book(), Book.objects.get()
    book.delete()
    same.title = "Emma"
    with pytest.raises(Book.DoesNotExist):
        same.save()


def test_a_book_without_an_id_is_not_updated() -> None:
    with pytest.raises(ValueError, match="force an update"):
        Book(**build_book()).save(force_update=True)


WHY = "for books: it leaves no new version, history or event."
SAVE_EACH, CREATE_EACH = (
    f"{WHY} Change each book and call its save()",
    f"{WHY} Call Book.objects.create() for each book",
)
REFUSED: list[tuple[str, Callable[[Book], Any], str]] = [
    ("update", lambda _: Book.objects.update(title="x"), f"update() is refused {SAVE_EACH}"),
    ("_update", lambda book: Book.objects.filter(pk=book.pk)._update([]), "save()"),
    ("bulk_update", lambda book: Book.objects.bulk_update([book], ["title"]), f"bulk_update() is refused {SAVE_EACH}"),
    (
        "bulk_create",
        lambda _: Book.objects.bulk_create([Book(**build_book())]),
        f"bulk_create() is refused {CREATE_EACH}",
    ),
    ("_insert", lambda _: Book.objects._insert([Book()], []), "Book.objects.create()"),  # type: ignore[attr-defined]
    ("delete", lambda _: Book.objects.all().delete(), "delete() of each book"),
    ("save elsewhere", lambda book: book.save(using="other"), "the default database alone"),
    ("create elsewhere", lambda _: Book.objects.using("other").create(**build_book()), "the default database alone"),
    ("delete elsewhere", lambda book: book.delete(using="other"), "the default database alone"),
    ("_raw_delete", lambda book: Book.objects.filter(pk=book.pk)._raw_delete("default"), "delete() of each book"),
]


@pytest.mark.parametrize(("write", "advice"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_leaves_no_history_is_refused(write: Callable[[Book], Any], advice: str) -> None:
    book = create_book()
    with pytest.raises(UnrecordedWrite, match=re.escape(advice)), transaction.atomic():
        write(book)
    assert [*Book.objects.values_list("title", "version")] == [("Pride and Prejudice", 1)]


def test_the_recipe_of_the_documents_works() -> None:
    novle = create_book(genre="Novle")
    section = (ROOT / "docs/operations/runbook.md").read_text().split("### From manage.py shell\n")[1]
    code = section.split("```python\n")[1].split("```")[0]
    exec(code, {})  # noqa: S102  # our own text
    novle.refresh_from_db()
    assert (novle.genre, novle.version) == ("Novel", 2)
    emma = Book.objects.get(isbn="978-0-14-143958-7")
    assert (emma.genre, list_kinds(emma.pk)) == ("Satire", [(1, 1), (2, 2), (3, 3), (4, 4)])
    channels = Change.objects.exclude(version=1).values_list("actor__channel", flat=True)
    assert {*channels} == {Actor.Channel.COMMAND}
