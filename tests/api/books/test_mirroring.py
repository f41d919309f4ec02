"""Books mirrored from another library through its events."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import httpx
import pytest
from django.db import connections
from django.utils import timezone

from books.models import Book, Change, MirroredBook
from books.writing import changes
from tests.support.books import ACTOR, build_book
from tests.support.sources import build_event, create_source, make_all_due
from webhooks import inbox
from webhooks.models import Event, Received, Source

pytestmark = pytest.mark.unannounced

MIRRORED_FIELDS = ("title", "author", "year", "isbn", "genre", "available")
ISBN = "978-0-14-143951-8"


def build_remote_book(id: int = 7, version: int = 1, **fields: Any) -> dict[str, Any]:
    """A book as version 2 of another library represents it."""
    times = {"created_at": "2026-01-31T09:30:00.000000Z", "updated_at": "2026-01-31T09:30:00.000000Z"}
    return {"id": id, **build_book(isbn13=None, available=True, **times, version=version), **fields}


@pytest.fixture
def branch(db: None) -> Source:
    return create_source(mirrors=True)


def receive_book_event(source: Source, kind: str, book: Any) -> Received:
    """Stores and processes an event of this kind about the book."""
    event = build_event(event=f"book.{kind}", api_version=2, data={"book": book, "previous": {}})
    return receive_event(source, event)


def receive_event(source: Source, event: dict[str, Any]) -> Received:
    inbox.store_event(source, event["id"], event["event"], json.dumps(event).encode())
    inbox.process_due(10, lambda: 0.5)
    return Received.objects.get(source=source, event_id=event["id"])


def mirror(source: Source, kind: str, book: Any) -> None:
    received = receive_book_event(source, kind, book)
    assert (received.state, received.error) == ("done", "")


def read_mirror(source: Source, remote_id: int = 7) -> dict[str, Any]:
    """The mirrored fields of the book here."""
    book: dict[str, Any] = (
        Book.objects.filter(mirrored__source=source, mirrored__remote_id=remote_id).values(*MIRRORED_FIELDS).get()
    )
    return book


def select_mirrored(book: dict[str, Any]) -> dict[str, Any]:
    return {name: book[name] for name in MIRRORED_FIELDS}


def test_a_library_mirrors_the_events_that_another_sends(api: httpx.Client, branch: Source) -> None:
    created_book = api.post("/api/v2/books", json=build_book()).json()
    changed_book = api.patch(f"/api/v2/books/{created_book['id']}", json={"title": "Emma", "available": False}).json()
    api.delete(f"/api/v2/books/{created_book['id']}")
    creation, change, deletion = (json.loads(bytes(event.body)) for event in Event.objects.order_by("pk"))
    receive_event(branch, creation)
    assert read_mirror(branch, created_book["id"]) == select_mirrored(created_book)
    receive_event(branch, change)
    assert read_mirror(branch, created_book["id"]) == select_mirrored(changed_book)
    receive_event(branch, deletion)
    assert not Book.objects.exists()
    assert set(Received.objects.values_list("state", "error")) == {("done", "")}


def test_a_mirrored_book_is_like_any_other_book(api: httpx.Client, branch: Source) -> None:
    book = build_remote_book(isbn=ISBN, title="  Émile  ", year=-300, available=False)
    mirror(branch, "created", book)
    row = Book.objects.get()
    response = api.get(f"/api/v2/books/{row.pk}").json()
    assert select_mirrored(response) == select_mirrored(book)
    assert (response["isbn13"], response["version"]) == ("9780141439518", 1)
    assert api.get("/api/v2/books?q=émile").json()["results"] == [response]
    assert api.delete(f"/api/v2/books/{row.pk}").status_code == 204


def test_mirrored_changes_publish_no_events(branch: Source) -> None:
    mirror(branch, "created", build_remote_book())
    mirror(branch, "updated", build_remote_book(version=2))
    mirror(branch, "deleted", build_remote_book(version=2))
    assert not Event.objects.exists()


def test_a_source_that_is_not_mirrored_changes_nothing(db: None) -> None:
    source = create_source(mirrors=False)
    mirror(source, "created", build_remote_book())
    mirror(source, "updated", {"no": "book"})
    mirror(source, "deleted", build_remote_book())
    assert not Book.objects.exists()
    assert not MirroredBook.objects.exists()


# Events by their kind and version, in the order in which they come, and what happens here; then the version of the book
# that is here at the end, None if none is.
SCENARIOS: list[tuple[str, int | None]] = [
    ("created 1, updated 2, updated 3", 3),
    ("updated 3, updated 2, created 1", 3),
    ("updated 2, updated 3, created 1", 3),
    ("created 1, updated 3, updated 3, updated 2", 3),
    ("updated 5", 5),
    *((f"created 1, deleted 2, {late}", None) for late in ("created 1", "updated 2", "deleted 1")),
    ("deleted 1, created 2", None),
    ("deleted 1, updated 2", None),
    ("deleted 1, created 3", 3),
    ("created 1, created 4, deleted 2", 4),
    ("created 1, deleted 2, created 4, updated 5", 5),
    ("created 1, deleted 2, updated 4, deleted 4", None),
    # What is deleted here comes back by a change of the original alone.
    ("created 1, delete, updated 1", None),
    ("created 1, delete, updated 2", 2),
    ("created 1, delete, deleted 1, created 1", None),
    ("created 1, delete, restore, updated 2", 2),
    ("created 1, delete, restore, deleted 1", None),
    ("created 1, delete, restore, deleted 1, created 3", 3),
    # The same deletion, sent again.
    ("created 1, deleted 1, restore, deleted 1", 1),
    ("created 1, deleted 1, restore, deleted 1, created 3", 3),
]


def test_the_copy_follows_the_latest_version_under_one_id(api: httpx.Client, db: None) -> None:
    for number, (steps, expected) in enumerate(SCENARIOS):
        source, pks = create_source(f"library {number}", mirrors=True), set[int]()
        books = {version: build_remote_book(version=version) for version in range(1, 6)}
        for step in steps.split(", "):
            kind, _, version = step.partition(" ")
            if kind == "delete":
                api.delete(f"/api/books/{max(pks)}")
            elif kind == "restore":
                assert api.post(f"/api/v2/books/{max(pks)}/restore").status_code == 201, steps
            else:
                # A deletion needs no more than the id and the version.
                book = books[int(version)]
                mirror(source, kind, {"id": 7, "version": int(version)} if kind == "deleted" else book)
            pks |= {*Book.objects.filter(mirrored__source=source).values_list("pk", flat=True)}
        here = [*Book.objects.filter(pk__in=pks).values(*MIRRORED_FIELDS)]
        assert here == ([select_mirrored(books[expected])] if expected else []), steps
        assert len(pks) <= 1, steps


def test_books_of_different_libraries_may_have_the_same_id(branch: Source) -> None:
    other = create_source("other", mirrors=True)
    book_id = changes.create_book(build_book(), ACTOR, timezone.now(), announce=False).id
    first, second = build_remote_book(book_id), build_remote_book(book_id)
    mirror(branch, "created", first)
    mirror(other, "created", second)
    assert (read_mirror(branch, book_id), read_mirror(other, book_id)) == (
        select_mirrored(first),
        select_mirrored(second),
    )
    mirror(other, "deleted", second)
    assert read_mirror(branch, book_id) == select_mirrored(first)
    assert Book.objects.filter(pk=book_id).exists()


def test_a_change_without_new_values_still_raises_the_remote_version(branch: Source) -> None:
    book = build_remote_book()
    mirror(branch, "created", book)
    mirror(branch, "updated", {**book, "version": 3})
    mirror(branch, "updated", build_remote_book(version=2))
    assert read_mirror(branch) == select_mirrored(book)


def list_changes() -> list[tuple[int, str, str]]:
    """Returns the version, the kind and the channel of each change."""
    changes = Change.objects.order_by("id").select_related("actor")
    return [(change.version, change.get_kind_display(), change.actor.channel) for change in changes]


def test_a_book_that_is_restored_there_comes_back_with_its_history(branch: Source) -> None:
    mirror(branch, "created", build_remote_book(isbn=ISBN))
    copy = Book.objects.get()
    mirror(branch, "deleted", build_remote_book(version=2))
    book = build_remote_book(version=4, isbn="restored")
    mirror(branch, "updated", book)
    assert read_mirror(branch) == select_mirrored(book)
    restored = Book.objects.get()
    assert (restored.pk, restored.version, restored.created_at) == (copy.pk, 3, copy.created_at)
    assert restored.isbn13 is None
    assert list_changes() == [(1, "created", "mirror"), (2, "deleted", "mirror"), (3, "restored", "mirror")]
    assert not Event.objects.exists()


@pytest.mark.unrecorded
@pytest.mark.parametrize("former_book_id", [None, 987_654_321])
def test_a_book_whose_old_id_is_not_known_gets_a_new_one(branch: Source, former_book_id: int | None) -> None:
    """Older code deleted it and left neither its id nor its history."""
    mirror(branch, "created", build_remote_book())
    Book._base_manager.all().delete()
    MirroredBook.objects.create(source=branch, remote_id=7, version=1, former_book_id=former_book_id)
    book = build_remote_book(version=4)
    mirror(branch, "created", book)
    assert read_mirror(branch) == select_mirrored(book)


def test_a_book_comes_back_when_its_isbn_is_free(branch: Source, api: httpx.Client) -> None:
    mirror(branch, "created", build_remote_book(isbn=ISBN))
    pk = Book.objects.get().pk
    mirror(branch, "deleted", build_remote_book())
    holder = api.post("/api/books", json=build_book(isbn=ISBN)).json()
    received = receive_book_event(branch, "created", build_remote_book(version=3, isbn=ISBN))
    assert (received.state, received.error) == ("waiting", f"IsbnInUse: {ISBN}")
    api.delete(f"/api/books/{holder['id']}")
    make_all_due()
    inbox.process_due(10, lambda: 0.5)
    assert Book.objects.get().pk == pk


def test_the_books_of_a_deleted_source_stay(branch: Source) -> None:
    mirror(branch, "created", build_remote_book())
    branch.delete()
    assert Book.objects.count() == 1


def test_an_invalid_event_is_reported_with_its_problem(branch: Source) -> None:
    problems: list[tuple[dict[str, Any], str]] = [
        ({"year": "1984"}, "year: Input should be a valid integer."),
        ({"available": "yes"}, "available: Input should be a valid boolean."),
        ({"id": "7"}, "id: Input should be a valid integer."),
        ({"id": 2**63}, "id: Ensure this value is less than or equal to 9223372036854775807."),
        ({"version": -1}, "version: Ensure this value is greater than or equal to 0."),
        ({"version": 2**63 - 1}, "version: Ensure this value is less than or equal to 9223372036854775806."),
    ]
    for values, message in problems:
        received = receive_book_event(branch, "created", build_remote_book(**values))
        assert (received.state, received.attempted, received.error) == ("waiting", 1, f"InvalidBookEvent: {message}")
    others: list[Any] = [None, {}, {"book": None}, {"book": []}]
    for kind, data in product(("created", "updated", "deleted"), others):
        received = receive_event(branch, build_event(event=f"book.{kind}", data=data))
        assert (received.state, received.error) == ("waiting", "InvalidBookEvent: data.book is no object."), kind
    received = receive_book_event(branch, "created", {"id": 7, "title": "Emma", "isbn": ISBN})
    missing = {f"{name}: This field is required" for name in ("version", "author", "year", "genre", "available")}
    assert {*received.error.removeprefix("InvalidBookEvent: ").removesuffix(".").split(". ")} == missing
    assert not Book.objects.exists()


def test_an_event_waits_until_its_isbn_is_free(branch: Source, api: httpx.Client) -> None:
    holder = api.post("/api/books", json=build_book(isbn=ISBN)).json()
    book = build_remote_book(isbn=ISBN)
    received = receive_book_event(branch, "created", book)
    assert (received.state, received.error) == ("waiting", f"IsbnInUse: {ISBN}")
    assert Book.objects.count() == 1
    api.delete(f"/api/books/{holder['id']}")
    make_all_due()
    inbox.process_due(10, lambda: 0.5)
    assert read_mirror(branch) == select_mirrored(book)


def test_events_of_one_book_may_be_processed_at_the_same_time(transactional_db: None) -> None:
    branch, books = create_source(mirrors=True), [build_remote_book(version=version) for version in range(1, 9)]
    for book in books:
        event = build_event(event="book.updated", data={"book": book})
        inbox.store_event(branch, event["id"], event["event"], json.dumps(event).encode())

    def process_all(_: int) -> None:
        try:
            while inbox.process_due(2, lambda: 0.5):
                pass
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(process_all, range(4)))
    assert set(Received.objects.values_list("state", "error")) == {("done", "")}
    assert read_mirror(branch) == select_mirrored(books[-1])
    assert Book.objects.count() == 1
