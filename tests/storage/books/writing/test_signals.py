"""A signal of a book is sent inside the transaction of its change, on both databases.

What a receiver saves there is another change: responses and later changes know it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from django.core.management import call_command
from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.utils import timezone

from books.history.actors import ActorRef
from books.models import Book, Operation
from books.operations.edits import Edit
from books.writing import changes
from books.writing.merging import merge_books
from tests.support.book_files import build_exported_book, write_books
from tests.support.books import build_book
from tests.support.books_admin import change_book, create_book, find_anybody
from tests.support.history import read_stored
from tests.support.operations import do_edit, do_undo, list_problems


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_request_whose_receiver_fails_is_not_tried_again(api: httpx.Client, method: str) -> None:
    address = "/api/books" if method == "POST" else f"/api/books/{create_book().pk}"
    fail = Mock(side_effect=ZeroDivisionError)
    post_save.connect(fail, Book)
    try:
        with transaction.atomic():
            assert api.request(method, address, json=build_book()).status_code == 500
    finally:
        post_save.disconnect(fail, Book)
    assert fail.call_count == 1


def note_title(instance: Book, **_: Any) -> None:
    """Saves the instance again, and the books that name it as their author."""
    instance.genre = f"Of {instance.title}, {instance.year}"
    instance.save()
    for book in Book.objects.filter(author=f"By {instance.pk}"):
        book.title = instance.genre
        book.save()


def note_other(instance: Book, **_: Any) -> None:
    """Saves the other books."""
    for book in Book.objects.exclude(pk=instance.pk):
        book.author = f"After {instance.title}"
        book.save()


@pytest.fixture
def saving_receiver() -> Iterator[None]:
    post_save.connect(note_title, Book)
    post_delete.connect(note_other, Book)
    yield
    post_save.disconnect(note_title, Book)
    post_delete.disconnect(note_other, Book)


def bulk(api: httpx.Client, *items: dict[str, Any]) -> httpx.Response:
    return api.post("/api/v2/books/bulk", json={"operations": items})


@pytest.mark.usefixtures("saving_receiver")
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_response_has_what_a_receiver_saved(api: httpx.Client, version: str) -> None:
    books = f"/api/{version}/books"
    created = api.post(books, json=build_book(title="Emma", year=1815))
    address = f"{books}/{created.json()['id']}"
    assert created.json()["genre"] == "Of Emma, 1815"
    assert api.get(address).content == created.content
    replaced = api.put(address, json=build_book(title="Ema", year=1815))
    assert replaced.json()["genre"] == "Of Ema, 1815"
    assert api.get(address).content == replaced.content


@pytest.mark.usefixtures("saving_receiver")
def test_an_etag_is_that_of_what_a_receiver_saved(api: httpx.Client) -> None:
    """The next change names it, and no other client's is lost."""
    response = api.post("/api/v2/books", json=build_book(title="Emma", year=1815))
    address = f"/api/v2/books/{response.json()['id']}"
    for year in (1816, 1817):
        response = api.patch(address, json={"year": year}, headers={"If-Match": response.headers["ETag"]})
        assert (response.status_code, response.json()["genre"]) == (200, f"Of Emma, {year}")
    response = api.post(f"{address}/revert", json={"version": 2}, headers={"If-Match": response.headers["ETag"]})
    assert (response.json()["year"], response.headers["ETag"]) == (1815, api.get(address).headers["ETag"])
    api.delete(address)
    response = api.post(f"{address}/restore")
    assert (response.status_code, response.headers["ETag"]) == (201, api.get(address).headers["ETag"])
    assert response.content == api.get(address).content


@pytest.mark.usefixtures("saving_receiver")
def test_a_bulk_request_changes_a_book_again_that_a_receiver_saved(api: httpx.Client) -> None:
    first, second, third = (create_book(title="Ema", year=1) for _ in range(3))
    change_book(second, author=f"By {first.pk}")
    version = Book.objects.get(pk=first.pk).version
    response = bulk(
        api,
        {"op": "update", "id": first.pk, "version": version, "book": {"title": "Emma"}},
        {"op": "update", "id": first.pk, "version": version + 2, "book": {"year": 1815}},
        {"op": "update", "id": second.pk, "book": {"year": 2}},
        {"op": "delete", "id": second.pk},
        {"op": "update", "id": third.pk, "book": {"year": 3}},
    )
    assert response.status_code == 200, response.text
    assert [*Book.objects.order_by("pk").values_list("title", "year", "genre", "author")] == [
        ("Emma", 1815, "Of Emma, 1815", "After Of Emma, 1815"),
        ("Ema", 3, "Of Ema, 3", "After Of Emma, 1815"),
    ]
    versions = {result["id"]: result.get("version") for result in response.json()["results"]}
    assert versions[third.pk] == Book.objects.get(pk=third.pk).version


@pytest.mark.usefixtures("saving_receiver")
def test_a_bulk_request_expects_no_version_that_a_receiver_has_replaced(api: httpx.Client) -> None:
    first, second = create_book(title="Ema", year=1), create_book(title="Ema", year=1)
    change_book(second, author=f"By {first.pk}")
    before = read_stored()
    response = bulk(
        api,
        {"op": "update", "id": first.pk, "book": {"title": "Emma"}},
        {"op": "update", "id": second.pk, "version": Book.objects.get(pk=second.pk).version, "book": {"year": 2}},
    )
    assert (response.status_code, read_stored()) == (409, before)


@pytest.mark.usefixtures("saving_receiver")
def test_an_operation_that_changed_a_book_twice_is_undone_with_a_receiver(api: httpx.Client, head: ActorRef) -> None:
    book = create_book(title="Ema", year=1)
    items = [{"op": "update", "id": book.pk, "book": {name: value}} for name, value in (("title", "E"), ("year", 2))]
    assert bulk(api, *items).status_code == 200
    undo = do_undo(Operation.objects.latest("pk"), head)
    assert (undo.state, undo.changed, list_problems(undo)) == ("done", 2, [])
    assert [*Book.objects.values_list("title", "year", "genre")] == [("Ema", 1, "Of Ema, 1")]


@pytest.mark.usefixtures("saving_receiver")
def test_operations_and_merges_go_on_after_a_receiver_saved(head: ActorRef) -> None:
    kept, other = create_book(isbn="I-1", title="Ema"), create_book(isbn="I-2", title="Emma")
    assert do_edit(head, Edit({"year": 2})).changed == 2
    assert do_edit(head, Edit({}, "isbn", "I-", "J-")).changed == 2
    versions = dict(Book.objects.values_list("pk", "version"))
    merge_books(kept.pk, versions, {"title": other.pk, "author": kept.pk}, head, timezone.now())
    assert [*Book.objects.values_list("title", "author", "genre", "isbn")] == [
        ("Emma", "After Emma", "Of Emma, 2", "J-1")
    ]


@pytest.mark.usefixtures("saving_receiver")
def test_an_import_goes_on_after_a_receiver_saved(db: None, tmp_path: Path) -> None:
    there = create_book(isbn="9780141439518", title="Ema")
    change_book(there, author=f"By {there.pk + 1}")
    rows = [build_exported_book(), build_exported_book(isbn="9780141439518", title="Emma")]
    (tmp_path / "in.csv").write_bytes(write_books("csv", rows))
    call_command("import_books", tmp_path / "in.csv", on_match="replace", take_doubtful=True)
    assert Book.objects.count() == 2
    assert Operation.objects.get().state == "done"


def test_many_books_are_not_written_over_newer_versions(db: None) -> None:
    stale, fresh, now = create_book(year=1), create_book(year=1), timezone.now()
    rows = changes.lock_books([stale.pk, fresh.pk])
    change_book(stale, year=2)
    pairs = [(row, row._replace(**row.find_changes({"title": "Emma"}, now))) for row in rows.values()]
    with pytest.raises(changes.ConcurrentChange), transaction.atomic():
        changes.change_books(pairs, find_anybody(), now)
