"""The books of another library, as its events make them here."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from django.db import connections
from django.utils import timezone

from books import changes
from books.models import Book, MirroredBook
from tests.support.books import new_book
from tests.support.sources import event, source, time_passes
from webhooks import inbox
from webhooks.models import Event, Received, Source

pytestmark = pytest.mark.quiet

TOLD = ("title", "author", "year", "isbn", "genre", "available")
HERE = "978-0-14-143951-8"


def shown(id: int = 7, version: int = 1, **members: Any) -> dict[str, Any]:
    """A book as version 2 of another library shows it."""
    times = {"created_at": "2026-01-31T09:30:00.000000Z", "updated_at": "2026-01-31T09:30:00.000000Z"}
    return {"id": id, **new_book(isbn13=None, available=True, **times, version=version), **members}


@pytest.fixture
def branch(db: None) -> Source:
    return source(mirrors=True)


def tell(of: Source, kind: str, book: Any) -> Received:
    """Has an event of it received and worked off."""
    sent = event(event=f"book.{kind}", api_version=2, data={"book": book, "previous": {}})
    return work(of, sent)


def work(of: Source, sent: dict[str, Any]) -> Received:
    inbox.store_event(of, sent["id"], sent["event"], json.dumps(sent).encode())
    inbox.process_due(10, lambda: 0.5)
    return Received.objects.get(source=of, event_id=sent["id"])


def done(of: Source, kind: str, book: Any) -> None:
    received = tell(of, kind, book)
    assert (received.state, received.error) == ("done", "")


def mirrored(of: Source, remote_id: int = 7) -> dict[str, Any]:
    """What of the book is as it was told."""
    found: dict[str, Any] = Book.objects.filter(mirrored__source=of, mirrored__remote_id=remote_id).values(*TOLD).get()
    return found


def told(book: dict[str, Any]) -> dict[str, Any]:
    return {name: book[name] for name in TOLD}


def test_what_one_library_sends_another_takes(api: httpx.Client, branch: Source) -> None:
    created = api.post("/api/v2/books", json=new_book()).json()
    changed = api.patch(f"/api/v2/books/{created['id']}", json={"title": "Emma", "available": False}).json()
    api.delete(f"/api/v2/books/{created['id']}")
    added, updated, deleted = (json.loads(bytes(one.body)) for one in Event.objects.order_by("pk"))
    work(branch, added)
    assert mirrored(branch, created["id"]) == told(created)
    work(branch, updated)
    assert mirrored(branch, created["id"]) == told(changed)
    work(branch, deleted)
    assert not Book.objects.exists()
    assert set(Received.objects.values_list("state", "error")) == {("done", "")}


def test_a_mirrored_book_is_a_book_like_others(api: httpx.Client, branch: Source) -> None:
    book = shown(isbn=HERE, title="  Émile  ", year=-300, available=False)
    done(branch, "created", book)
    here = Book.objects.get()
    answer = api.get(f"/api/v2/books/{here.pk}").json()
    assert told(answer) == told(book)
    assert (answer["isbn13"], answer["version"]) == ("9780141439518", 1)
    assert api.get("/api/v2/books?q=émile").json()["results"] == [answer]
    assert api.delete(f"/api/v2/books/{here.pk}").status_code == 204


def test_what_is_mirrored_is_not_announced_again(branch: Source) -> None:
    done(branch, "created", shown())
    done(branch, "updated", shown(version=2))
    done(branch, "deleted", shown(version=2))
    assert not Event.objects.exists()


def test_a_change_of_a_book_that_is_not_known_adds_it(branch: Source) -> None:
    book = shown(version=5)
    done(branch, "updated", book)
    assert mirrored(branch) == told(book)


def test_a_source_that_is_not_mirrored_changes_nothing(db: None) -> None:
    quiet = source(mirrors=False)
    done(quiet, "created", shown())
    done(quiet, "updated", {"no": "book"})
    done(quiet, "deleted", shown())
    assert not Book.objects.exists()
    assert not MirroredBook.objects.exists()


def test_ids_are_their_librarys_own(branch: Source) -> None:
    other = source("other", mirrors=True)
    id = changes.add_book(new_book(), timezone.now(), quietly=True).pk
    one, two = shown(id), shown(id)
    done(branch, "created", one)
    done(other, "created", two)
    assert (mirrored(branch, id), mirrored(other, id)) == (told(one), told(two))
    done(other, "deleted", two)
    assert mirrored(branch, id) == told(one)
    assert Book.objects.filter(pk=id).exists()


@pytest.mark.parametrize("versions", [[1, 2, 3], [3, 2, 1], [2, 3, 1], [1, 3, 3, 2], [3, 3]])
def test_the_latest_version_stays(branch: Source, versions: list[int]) -> None:
    books = {version: shown(version=version) for version in set(versions)}
    for version in versions:
        done(branch, "created" if version == 1 else "updated", books[version])
    assert mirrored(branch) == told(books[3])
    assert Book.objects.count() == 1


def test_an_event_of_a_version_that_is_known_changes_nothing(branch: Source) -> None:
    book = shown(version=3)
    done(branch, "created", book)
    done(branch, "updated", shown(version=3))
    assert mirrored(branch) == told(book)


def test_a_change_that_changes_nothing_here_is_known_all_the_same(branch: Source) -> None:
    book = shown()
    done(branch, "created", book)
    done(branch, "updated", {**book, "version": 3})
    done(branch, "updated", shown(version=2))
    assert mirrored(branch) == told(book)


@pytest.mark.parametrize("late", [("created", 1), ("updated", 2), ("updated", 9), ("deleted", 2)])
def test_a_deleted_book_does_not_come_back(branch: Source, late: tuple[str, int]) -> None:
    kind, version = late
    done(branch, "created", shown())
    done(branch, "deleted", shown(version=2))
    done(branch, kind, shown(version=version))
    assert not Book.objects.exists()


@pytest.mark.parametrize("kind", ["created", "updated"])
def test_a_book_that_was_deleted_first_is_not_added(branch: Source, kind: str) -> None:
    done(branch, "deleted", shown())
    done(branch, kind, shown(version=2))
    assert not Book.objects.exists()


def test_a_deletion_wins_over_a_later_version(branch: Source) -> None:
    done(branch, "updated", shown(version=9))
    done(branch, "deleted", shown(version=8))
    assert not Book.objects.exists()


def test_a_deletion_needs_no_more_than_the_book(branch: Source) -> None:
    done(branch, "created", shown())
    done(branch, "deleted", {"id": 7, "version": 1})
    assert not Book.objects.exists()


def test_a_book_that_was_deleted_here_comes_back_with_its_next_change(branch: Source, api: httpx.Client) -> None:
    done(branch, "created", shown())
    api.delete(f"/api/books/{Book.objects.get().pk}")
    book = shown(version=2)
    done(branch, "updated", book)
    assert mirrored(branch) == told(book)


def test_a_book_that_was_deleted_here_may_be_deleted_there(branch: Source, api: httpx.Client) -> None:
    done(branch, "created", shown())
    api.delete(f"/api/books/{Book.objects.get().pk}")
    done(branch, "deleted", shown())
    done(branch, "created", shown())
    assert not Book.objects.exists()


def test_the_books_of_a_source_that_is_gone_stay(branch: Source) -> None:
    done(branch, "created", shown())
    branch.delete()
    assert Book.objects.count() == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"title": None}, "title: Input should be a valid string."),
        ({"title": 1}, "title: Input should be a valid string."),
        ({"title": "t" * 1001}, "title: Ensure this field has no more than 1000 characters."),
        ({"author": "\0"}, "author: Null characters are not allowed."),
        ({"genre": "\ud800"}, "genre: Surrogate characters are not allowed."),
        ({"year": "1984"}, "year: Input should be a valid integer."),
        ({"year": 2**31}, "year: Ensure this value is less than or equal to 2147483647."),
        ({"available": "yes"}, "available: Input should be a valid boolean."),
        ({"id": "7"}, "id: Input should be a valid integer."),
        ({"id": 2**63}, "id: Ensure this value is less than or equal to 9223372036854775807."),
        ({"version": -1}, "version: Ensure this value is greater than or equal to 0."),
    ],
)
def test_a_book_that_cannot_be_kept_says_why(branch: Source, wrong: dict[str, Any], words: str) -> None:
    received = tell(branch, "created", shown(**wrong))
    assert (received.state, received.attempted, received.error) == ("waiting", 1, f"InvalidBookEvent: {words}")
    assert not Book.objects.exists()


@pytest.mark.parametrize("kind", ["created", "updated", "deleted"])
@pytest.mark.parametrize("data", [None, [], "book", {}, {"book": None}, {"book": []}, {"books": {}}])
def test_an_event_without_a_book_says_so(branch: Source, kind: str, data: Any) -> None:
    received = work(branch, event(event=f"book.{kind}", data=data))
    assert (received.state, received.error) == ("waiting", "InvalidBookEvent: data.book is no object.")


def test_all_that_is_wrong_is_said(branch: Source) -> None:
    received = tell(branch, "created", {"id": 7, "title": "Emma", "isbn": HERE})
    missing = [f"{name}: This field is required." for name in ("version", "author", "year", "genre", "available")]
    assert sorted(received.error.removeprefix("InvalidBookEvent: ").replace(". ", ".|").split("|")) == sorted(missing)


def test_an_isbn_in_use_is_waited_for(branch: Source, api: httpx.Client) -> None:
    holder = api.post("/api/books", json=new_book(isbn=HERE)).json()
    book = shown(isbn=HERE)
    received = tell(branch, "created", book)
    assert (received.state, received.error) == ("waiting", f"IsbnInUse: {HERE}")
    assert Book.objects.count() == 1
    api.delete(f"/api/books/{holder['id']}")
    time_passes()
    inbox.process_due(10, lambda: 0.5)
    assert mirrored(branch) == told(book)


def test_events_of_one_book_may_be_worked_off_at_once(transactional_db: None) -> None:
    branch, books = source(mirrors=True), [shown(version=version) for version in range(1, 25)]
    for book in books:
        sent = event(event="book.updated", data={"book": book})
        inbox.store_event(branch, sent["id"], sent["event"], json.dumps(sent).encode())

    def drain(_: int) -> None:
        try:
            while inbox.process_due(2, lambda: 0.5):
                pass
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(drain, range(4)))
    assert set(Received.objects.values_list("state", "error")) == {("done", "")}
    assert mirrored(branch) == told(books[-1])
    assert Book.objects.count() == 1
