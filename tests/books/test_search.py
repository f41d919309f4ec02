"""What is found by a text, and that the indexes behind it follow every change."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from books import changes, search
from books.fields import fold
from books.models import FOLDED_COLUMNS, Book
from books.search import filter_containing, isbn_prefix_condition
from tests.support.books import new_book

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
MEMBERS = ("title", "author", "genre")
# Few characters, so that they meet: those that patterns, questions to an index and foldings take for something else.
TEXTS = st.text(st.sampled_from("abA \"'*^%_\\(){}:-+.,\tßẞSéÉe\u0301İiςΣ春𐐀\ufffd\uffff"), max_size=8)


def found(text: str, *members: str) -> list[str]:
    return [book.title for book in filter_containing(Book.objects.order_by("pk"), text, *(members or MEMBERS))]


def stored(**members: Any) -> Book:
    return changes.add_book(new_book(**members), now=NOW)


@pytest.fixture(params=["few", "common"])
def scarcity(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is little of, and what there is much of, are found by different ways."""
    if request.param == "common":
        monkeypatch.setattr(search, "MAX_INDEX_MATCHES", 0)


@pytest.mark.usefixtures("db", "scarcity")
def test_a_text_is_found_in_any_of_the_members_named() -> None:
    stored(title="Emma", author="Jane Austen", genre="Novel")
    stored(title="Austenland", author="Shannon Hale", genre="Novel")
    stored(title="Persuasion", author="-", genre="AUSTEN")
    assert found("austen") == ["Emma", "Austenland", "Persuasion"]
    assert found("austen", "author") == ["Emma"]
    assert found("austen", "title", "genre") == ["Austenland", "Persuasion"]


@pytest.mark.usefixtures("db", "scarcity")
@pytest.mark.parametrize(
    "text", ['say "no"', '"', '""" OR', "a AND b", "NOT x", "{title}:", "x*", "^first", "(y)", "NEAR(a b)", "-z", "c'd"]
)
def test_an_index_takes_no_text_for_a_question(text: str) -> None:
    stored(title=f"before {text} after")
    stored(title="another book")
    assert found(text) == [f"before {text} after"]


@pytest.mark.usefixtures("db", "scarcity")
@pytest.mark.parametrize("text", ["", "z", "zq", "...", "!?!", "q z", "zq!", "  ", "___"])
def test_what_an_index_has_no_entry_for_is_found_too(text: str) -> None:
    stored(title=f"({text})", author="-", genre="-")
    assert found(text) == [f"({text})"]


@pytest.mark.usefixtures("db", "scarcity")
def test_texts_that_differ_late_are_told_apart() -> None:
    stored(title="a" * 200 + "b")
    stored(title="a" * 200 + "c")
    assert found("a" * 200 + "c") == ["a" * 200 + "c"]


@pytest.mark.usefixtures("db")
def test_the_index_follows_changes() -> None:
    book = stored(title="Northanger Abbey", author="Anonymous")
    changes.apply_change(changes.lock_book(book.pk), {"author": "Jane Austen"}, now=NOW)
    assert (found("anonymous"), found("austen"), found("northanger")) == ([], [book.title], [book.title])
    changes.delete_book(changes.lock_book(book.pk), now=NOW)
    assert found("northanger") == []
    require_index_in_step()


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize("count", [3, 2_000])
def test_the_index_follows_many_books_at_once(count: int) -> None:
    changes.add_books([new_book(title=f"Volume {number}") for number in range(count)], now=NOW)
    assert len(found("volume")) == count
    assert found(f"volume {count - 1}") == [f"Volume {count - 1}"]
    changes.delete_books(filter_containing(Book.objects.all(), "volume", "title"), now=NOW)
    assert found("volume") == []
    require_index_in_step()


@pytest.mark.usefixtures("db")
def test_the_index_follows_an_import(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("title,author,year,isbn,genre\nLalka,Bolesław Prus,1890,1,Novel\n", encoding="utf-8")
    call_command("import_books", file)
    assert found("bolesław") == ["Lalka"]


@pytest.mark.usefixtures("db")
@pytest.mark.quiet
def test_the_index_follows_a_large_seeding() -> None:
    call_command("seed_books", count=10_050)
    book = stored(title="Added afterwards")
    assert found("pride and prejudice") == ["Pride and Prejudice"]
    assert found("added after") == [book.title]
    require_index_in_step()


@pytest.mark.usefixtures("transactional_db")
def test_what_is_rolled_back_is_not_found() -> None:
    with transaction.atomic():
        kept = stored(title="Kept")
    with transaction.atomic():
        stored(title="Withdrawn")
        changes.apply_change(changes.lock_book(kept.pk), {"title": "Renamed"}, now=NOW)
        transaction.set_rollback(True)
    assert (found("withdrawn"), found("renamed"), found("kept")) == ([], [], ["Kept"])
    require_index_in_step()


def require_index_in_step() -> None:
    """PostgreSQL's follow by themselves; SQLite's is asked (SQLite, FTS5, 6), and fails where it is not."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO books_trigrams (books_trigrams, rank) VALUES ('integrity-check', 1)")


@pytest.mark.usefixtures("db", "scarcity")
@settings(max_examples=100)
@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=5), TEXTS, TEXTS)
def test_books_are_found_as_python_finds_texts(rows: list[tuple[str, str, str]], one: str, other: str) -> None:
    with transaction.atomic():
        books = [stored(**dict(zip(MEMBERS, row, strict=True))) for row in rows]
        for members in [*((member,) for member in MEMBERS), MEMBERS]:
            anywhere = [book.pk for book in books if is_in(one, book, members) and is_in(other, book, MEMBERS)]
            chained = filter_containing(filter_containing(Book.objects.order_by("pk"), one, *members), other, *MEMBERS)
            assert ([book.pk for book in chained], chained.count()) == (anywhere, len(anywhere))
        transaction.set_rollback(True)


def is_in(text: str, book: Book, members: tuple[str, ...]) -> bool:
    return any(fold(text) in getattr(book, FOLDED_COLUMNS[member]) for member in members)


@pytest.mark.usefixtures("db", "scarcity")
def test_the_start_of_an_isbn_is_found_to_the_letter() -> None:
    for isbn in ("080442957X", "0804", "a%", "ab", "108044"):
        stored(title=isbn, isbn=isbn)
    assert begun("0804") == ["080442957X", "0804"]
    assert begun("080442957x") == []
    assert begun("a%") == ["a%"]


def begun(text: str) -> list[str]:
    return [book.isbn for book in Book.objects.filter(isbn_prefix_condition(text)).order_by("pk")]
