"""`post_save` and `post_delete` of books: one for each change, whatever makes it, and inside its transaction.

Each function that writes books is reached here. After every test the changes are compared with the events.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.signals import ModelSignal, post_delete, post_save
from django.utils import timezone

from books.history.actors import ActorRef
from books.models import Book
from books.operations.edits import Edit
from books.writing.merging import merge_books
from tests.support import book_audit
from tests.support.book_files import build_exported_book, write_books
from tests.support.books import build_book
from tests.support.books_admin import create_book, delete_book
from tests.support.history import read_stored
from tests.support.operations import (
    begin_deletion,
    begin_edit,
    begin_undo,
    create_head_librarian,
    do_deletion,
    run_operations,
    skip_delays,
)

Act = Callable[[], object]


class Library(NamedTuple):
    """A client of a library, and who begins operations."""

    api: httpx.Client
    head: ActorRef
    folder: Path


@pytest.fixture
def library(api: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    skip_delays(monkeypatch)
    return Library(api, create_head_librarian(), tmp_path)


def request(method: str, address: str, **fields: Any) -> Callable[[Library], Act]:
    """A request for a book that is there."""

    def prepare(library: Library) -> Act:
        book = create_book(title="Ema")
        return lambda: library.api.request(method, address.format(book.pk), json=fields or None)

    return prepare


def restore(library: Library) -> Act:
    book = create_book()
    delete_book(book)
    return lambda: library.api.post(f"/api/v2/books/{book.pk}/restore")


def send_bulk(library: Library) -> Act:
    first, second = create_book(), create_book()
    items = [
        {"op": "create", "book": build_book()},
        {"op": "update", "id": first.pk, "book": {"title": "Emma"}},
        {"op": "delete", "id": second.pk},
    ]
    return lambda: library.api.post("/api/v2/books/bulk", json={"operations": items})


def edit_many(library: Library) -> Act:
    create_book(genre="Poem"), create_book(available=False), create_book(year=1)
    begin_edit(library.head, Edit({"genre": "Novel", "available": True, "year": 1813}))
    return run_operations


def delete_many(library: Library) -> Act:
    create_book(), create_book()
    begin_deletion(library.head)
    return run_operations


def undo_deletion(library: Library) -> Act:
    create_book(), create_book()
    begin_undo(do_deletion(library.head), library.head)
    return run_operations


def import_file(library: Library) -> Act:
    create_book(isbn="9780141439518", title="Ema", genre="Novel")
    path = library.folder / "books.csv"
    path.write_bytes(write_books("csv", [build_exported_book(isbn="9780141439518"), build_exported_book()]))
    return lambda: call_command("import_books", path, on_match="replace", take_doubtful=True)


def merge(library: Library) -> Act:
    kept, other = create_book(title="Ema").pk, create_book(title="Emma").pk
    return lambda: merge_books(kept, {kept: 1, other: 1}, {"title": other}, library.head, timezone.now())


def save_instance(library: Library) -> Act:
    book = create_book(title="Ema")
    book.title = "Emma"
    return book.save


WAYS: dict[str, tuple[Callable[[Library], Act], dict[str, int]]] = {
    "POST 2": (request("POST", "/api/v2/books", **build_book()), {"created": 1}),
    "PATCH": (request("PATCH", "/api/v2/books/{}", title="Emma"), {"updated": 1}),
    "DELETE 2": (request("DELETE", "/api/v2/books/{}"), {"deleted": 1}),
    "restore": (restore, {"created": 1}),
    "bulk": (send_bulk, {"created": 1, "updated": 1, "deleted": 1}),
    "edit": (edit_many, {"updated": 3}),
    "deletion": (delete_many, {"deleted": 2}),
    "undo of a deletion": (undo_deletion, {"created": 2}),
    "import": (import_file, {"created": 1, "updated": 1}),
    "merge": (merge, {"updated": 1, "deleted": 1}),
    "create": (lambda _: lambda: Book.objects.create(**build_book()), {"created": 1}),
    "save": (save_instance, {"updated": 1}),
    "delete": (lambda _: create_book().delete, {"deleted": 1}),
    "seed_books": (lambda _: lambda: call_command("seed_books", count=3), {"created": 3}),
}
MARKS = {
    "seed_b": [pytest.mark.unannounced, pytest.mark.unrecorded],
}


@contextmanager
def listen(receiver: Callable[..., None]) -> Iterator[None]:
    for signal in (post_save, post_delete):
        signal.connect(receiver, sender=Book)
    try:
        yield
    finally:
        for signal in (post_save, post_delete):
            signal.disconnect(receiver, sender=Book)


class Recorder:
    """A receiver that records what it gets, and checks that the database and the history have it already."""

    def __init__(self) -> None:
        self.sent: Counter[tuple[str, int]] = Counter()
        self.update_fields: list[frozenset[str] | None] = []
        self.instances: list[Book] = []

    def __call__(self, signal: ModelSignal, sender: type[Book], instance: Book, using: str, **arguments: Any) -> None:
        columns = {field.attname: getattr(instance, field.attname) for field in Book._meta.concrete_fields}
        stored = Book.objects.filter(pk=instance.pk).values().first()
        assert (type(instance), instance._state.adding, instance._state.db, using) == (Book, False, "default", using)
        assert connection.in_atomic_block
        if signal is post_delete:
            assert stored is None
            assert arguments == {"origin": instance}
            self.sent["book.deleted", instance.pk] += 1
        else:
            assert stored == columns
            assert arguments.pop("raw") is False
            kind = "created" if arguments.pop("created") else "updated"
            self.sent[f"book.{kind}", instance.pk] += 1
            self.update_fields.append(arguments.pop("update_fields"))
            assert not arguments
        self.instances.append(instance)


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [pytest.param(*way, id=name, marks=MARKS.get(name[:6], [])) for name, way in WAYS.items()],
)
def test_each_change_has_one_signal(
    library: Library, prepare: Callable[[Library], Act], expected: dict[str, int]
) -> None:
    act, recorder = prepare(library), Recorder()
    earlier = book_audit.count_changes()
    with listen(recorder):
        act()
    changes = book_audit.count_changes() - earlier
    assert recorder.sent == changes
    kinds = Counter(kind.removeprefix("book.") for kind, _ in changes.elements())
    assert kinds == expected


def fail(**_: Any) -> None:
    raise LookupError("no room on the shelf")


@pytest.mark.parametrize(
    "name",
    ["PATCH", "restore", "bulk", "edit", "undo of a deletion", "import", "merge", "save"],
)
@pytest.mark.unannounced
def test_a_receiver_that_raises_undoes_the_change(library: Library, name: str) -> None:
    prepare, _ = WAYS[name]
    act = prepare(library)
    before = read_stored()
    with listen(fail), suppress(LookupError, CommandError):
        act()
    assert read_stored() == before


def test_the_signals_of_an_instance_are_those_of_that_instance(db: None) -> None:
    """As with Django's own `save`, so that receivers find what the caller left there."""
    recorder = Recorder()
    with listen(recorder):
        book = Book.objects.create(**build_book())
        book.title = "Emma"
        book.save()
        book.delete()
    assert [instance is book for instance in recorder.instances] == [True, True, True]


def test_the_fields_of_a_change_are_those_that_differ(library: Library) -> None:
    book, recorder = create_book(title="Ema", year=1815), Recorder()
    with listen(recorder):
        library.api.patch(f"/api/v2/books/{book.pk}", json={"title": "Emma", "year": 1815})
    assert recorder.update_fields == [frozenset({"title", "title_folded", "updated_at", "version"})]
