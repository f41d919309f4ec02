"""Which books a text finds, and that the search indexes follow every change."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from books.fields import fold
from books.models import FOLDED_COLUMNS, Book
from books.search import texts
from books.search.texts import MAX_INDEXED_TEXT, filter_containing, isbn_prefix_condition
from books.writing import changes
from library_site.db.sql import PreparedStatement
from tests.support.books import ACTOR, build_book

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
FIELDS = ("title", "author", "genre")
# Few characters, so that texts often match: those with a meaning in patterns, in index queries or in case folding.
TEXTS = st.text(st.sampled_from("abA \"'*^%_\\(){}:-+.,\tßẞSéÉe\u0301İiςΣ春𐐀\ufffd\uffff"), max_size=8)


def find_titles(text: str, *fields: str) -> list[str]:
    return [book.title for book in filter_containing(Book.objects.order_by("pk"), text, *(fields or FIELDS))]


def create_book(**fields: Any) -> Book:
    return Book.objects.get(pk=changes.create_book(build_book(**fields), ACTOR, now=NOW).id)


@pytest.fixture(params=["few", "common"])
def scarcity(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rare and common texts are searched in different ways."""
    if request.param == "common":
        monkeypatch.setattr(texts, "MAX_INDEX_MATCHES", 0)
        monkeypatch.setattr(texts, "RARE_LIMIT", 0)


@pytest.mark.usefixtures("db", "scarcity")
def test_a_text_is_found_in_any_of_the_fields_named() -> None:
    create_book(title="Emma", author="Jane Austen", genre="Novel")
    create_book(title="Austenland", author="Shannon Hale", genre="Novel")
    create_book(title="Persuasion", author="-", genre="AUSTEN")
    assert find_titles("austen") == ["Emma", "Austenland", "Persuasion"]
    assert find_titles("austen", "author") == ["Emma"]
    assert find_titles("austen", "title", "genre") == ["Austenland", "Persuasion"]


@pytest.mark.usefixtures("db", "scarcity")
def test_each_character_of_a_text_is_found_as_itself_with_and_without_an_index_entry() -> None:
    signs = ['say "no"', '"', '""" OR', "a AND b", "NOT x", "{title}:", "x*", "^first", "(y)", "NEAR(a b)", "-z", "c'd"]
    short = ["", "z", "zq", "...", "!?!", "q z", "zq!", "  ", "___"]
    long = ["a" * MAX_INDEXED_TEXT + end for end in "bc"]
    titles = [f"before {text} after" for text in signs + short + long]
    changes.create_books([build_book(title=title) for title in titles], ACTOR, now=NOW)
    for text in signs + short + long:
        assert find_titles(text, "title") == [title for title in titles if fold(text) in fold(title)], text


@pytest.mark.usefixtures("db")
def test_the_index_follows_changes() -> None:
    book = create_book(title="Northanger Abbey", author="Anonymous")
    changes.change_book(book.pk, {"author": "Jane Austen"}, None, ACTOR, now=NOW)
    found = [find_titles(text) for text in ("anonymous", "austen", "northanger")]
    assert found == [[], [book.title], [book.title]]
    changes.delete_book(book.pk, None, ACTOR, NOW)
    assert find_titles("northanger") == []
    require_index_in_step()


@pytest.mark.usefixtures("db")
def test_the_index_follows_a_change_of_many_books() -> None:
    count = 200
    changes.create_books([build_book(title=f"Volume {number}") for number in range(count)], ACTOR, now=NOW)
    assert len(find_titles("volume")) == count
    assert find_titles(f"volume {count - 1}") == [f"Volume {count - 1}"]
    pks = filter_containing(Book.objects.all(), "volume", "title").values_list("pk", flat=True)
    changes.delete_books([*changes.lock_books(pks).values()], ACTOR, now=NOW)
    assert find_titles("volume") == []
    require_index_in_step()


@pytest.mark.usefixtures("transactional_db")
def test_a_rolled_back_change_is_not_found() -> None:
    with transaction.atomic():
        book = create_book(title="Kept")
    with transaction.atomic():
        create_book(title="Withdrawn")
        changes.change_book(book.pk, {"title": "Renamed"}, None, ACTOR, now=NOW)
        transaction.set_rollback(True)
    assert (find_titles("withdrawn"), find_titles("renamed"), find_titles("kept")) == ([], [], ["Kept"])
    require_index_in_step()


def require_index_in_step() -> None:
    """Runs the integrity check of SQLite's index (SQLite, FTS5, 6); PostgreSQL's indexes need none."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO books_trigrams (books_trigrams, rank) VALUES ('integrity-check', 1)")


@pytest.mark.usefixtures("db", "scarcity")
@settings(max_examples=2 * settings().max_examples)
@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=5), TEXTS, TEXTS)
def test_books_are_found_as_python_finds_texts(rows: list[tuple[str, str, str]], first: str, second: str) -> None:
    with transaction.atomic():
        books = [create_book(**dict(zip(FIELDS, row, strict=True))) for row in rows]
        for fields in [*((field,) for field in FIELDS), FIELDS]:
            expected = [
                book.pk for book in books if contains_text(first, book, fields) and contains_text(second, book, FIELDS)
            ]
            queryset = filter_containing(
                filter_containing(Book.objects.order_by("pk"), first, *fields), second, *FIELDS
            )
            assert ([book.pk for book in queryset], queryset.count()) == (expected, len(expected))
        transaction.set_rollback(True)


def contains_text(text: str, book: Book, fields: tuple[str, ...]) -> bool:
    return any(fold(text) in getattr(book, FOLDED_COLUMNS[field]) for field in fields)


@pytest.mark.usefixtures("db")
@pytest.mark.unannounced
@pytest.mark.unrecorded
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite plans a filter without statistics")
def test_the_plan_of_a_filter_does_not_depend_on_the_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    call_command("seed_books", count=10_050)
    plans = []
    for target in (0, 1, 10, 1_000):
        with connection.cursor() as cursor:
            for column in FOLDED_COLUMNS.values():
                cursor.execute(f"ALTER TABLE books_book ALTER {column} SET STATISTICS {target}")
            cursor.execute("ANALYZE books_book")
        plans.append([find_plan(author="smith"), find_plan(genre="mystery"), find_plan(author="an")])
        # No book has it, but it has no trigram either: the index would be read as a whole.
        plans[-1].append(find_plan(author="zq"))
    assert plans == [["book_author_folded_trigrams", *["books_book_pkey"] * 3]] * len(plans)
    # The sample is of all parts of the table.
    half = Book.objects.order_by("pk").values_list("pk", flat=True)[5_000]
    with connection.cursor() as cursor:
        cursor.execute("UPDATE books_book SET genre_folded = 'quixotry' WHERE id >= %s", [half])
    assert find_plan(genre="quixotry") == "books_book_pkey"
    # It decides alone: PostgreSQL would read these in the order of the list.
    monkeypatch.setattr(texts, "RARE_LIMIT", 10**9)
    assert find_plan(genre="mystery") == "book_genre_folded_trigrams"


@pytest.mark.parametrize(
    ("count", "books", "expected"),
    [(0, None, True), (2, 10**6, True), (3, 10**6, False), (22, 10**4, True), (23, 10**4, False)],
)
def test_a_text_is_rare_by_the_square_of_its_share(
    db: None, monkeypatch: pytest.MonkeyPatch, count: int, books: int | None, expected: bool
) -> None:
    """Of the books of a whole sample, which are 500."""
    monkeypatch.setattr(PreparedStatement, "fetch_all", lambda *_: [(count, books)])
    assert texts.is_rare(("title_folded",), "emma") is expected


def find_plan(**texts: str) -> str:
    """Returns the index by which the first hundred books are found that have this text in this field."""
    [(field, text)] = texts.items()
    books = filter_containing(Book.objects.order_by("pk"), text, field)
    [index] = re.findall(r"(?:using|Scan on) (book\w*_(?:trigrams|pkey))", books[:100].explain())
    return str(index)


@pytest.mark.usefixtures("db", "scarcity")
def test_the_start_of_an_isbn_matches_exactly() -> None:
    for isbn in ("080442957X", "0804", "a%", "ab", "108044"):
        create_book(title=isbn, isbn=isbn)
    assert find_isbns("0804") == ["080442957X", "0804"]
    assert find_isbns("080442957x") == []
    assert find_isbns("a%") == ["a%"]


def find_isbns(text: str) -> list[str]:
    return [book.isbn for book in Book.objects.filter(isbn_prefix_condition(text)).order_by("pk")]
