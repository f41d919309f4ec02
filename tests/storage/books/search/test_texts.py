"""Which books a text finds, and that the search indexes follow every change."""

import re
from datetime import UTC, datetime
from itertools import product
from math import inf
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import Q
from hypothesis import given, settings
from hypothesis import strategies as st

from books.book.texts import fold, fold_loosely
from books.models import FOLDED_COLUMNS, Book
from books.search import texts
from books.search.texts import (
    MAX_INDEXED_TEXT,
    build_query,
    count_books,
    find_strictly,
    find_words,
    is_sqlite,
    isbn_prefix_condition,
)
from books.writing import changes
from tests.support.books import ACTOR, build_book

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
FIELDS = ("title", "author", "genre")
# Few characters, so that texts often match: those with a meaning in patterns, in index queries or in folding, and those
# that become one with a neighbour.
TEXTS = st.text(
    st.sampled_from(
        "abA \"'*^%_\\(){}:-+.\tßẞSée\u0301İςΣ春𐐀\ufffd\uffff\u00ad’–ﬁŉ\u0345ｶﾞ\u3099\u1112\u1161\u11ab한ำ½"
    ),
    max_size=8,
)


def find_titles(text: str, field: str = "") -> list[str]:
    condition = find_words([fold_loosely(text)], field)
    return [book.title for book in Book.objects.filter(condition).order_by("pk")]


def create_book(**fields: Any) -> Book:
    return Book.objects.get(pk=changes.create_book(build_book(**fields), ACTOR, now=NOW).id)


@pytest.mark.usefixtures("db", "scarcity")
def test_each_character_of_a_text_is_found_as_itself_with_and_without_an_index_entry() -> None:
    signs = ['say "no"', '"', '""" OR', "a AND b", "NOT x", "{title}:", "x*", "^first", "(y)", "NEAR(a b)", "-z", "c'd"]
    short = ["", "z", "zq", "...", "!?!", "q z", "zq!", "  ", "___"]
    long = ["a" * MAX_INDEXED_TEXT + end for end in "bc"]
    titles = [f"before {text} after" for text in signs + short + long]
    changes.create_books([build_book(title=title) for title in titles], ACTOR, now=NOW)
    for text in signs + short + long:
        found = Book.objects.filter(find_strictly(text, "title")).order_by("pk")
        assert [book.title for book in found] == [title for title in titles if fold(text) in fold(title)], text
        loose = fold_loosely(text)
        assert find_titles(text, "title") == [title for title in titles if loose in fold_loosely(title)], text


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
        part = books[0].title_folded[1:5] if books else first
        for field, text in product(FIELDS, (first, part)):
            expected = [book.pk for book in books if fold(text) in getattr(book, FOLDED_COLUMNS[field])]
            queryset = Book.objects.filter(find_strictly(text, field)).order_by("pk")
            assert ([book.pk for book in queryset], queryset.count()) == (expected, len(expected))
            words = [fold_loosely(text), fold_loosely(second)]
            expected = [book.pk for book in books if all(word in fold_loosely(getattr(book, field)) for word in words)]
            queryset = Book.objects.filter(find_words(words, field)).order_by("pk")
            # Some are found in another way if all are read.
            assert [book.pk for book in queryset] == [book.pk for book in queryset[:10]] == expected
            assert count_books(queryset) == queryset.count() == len(expected)
        transaction.set_rollback(True)


def test_the_index_is_not_asked_for_a_short_word_beside_a_longer_one() -> None:
    assert build_query(["the", "austen"]) == build_query(["austen"]) == '"aus" AND "ten"'
    assert (build_query(["the", "of"]), build_query(["of", "qj"])) == ('"the"', "")


@pytest.mark.usefixtures("db")
def test_a_common_text_is_counted_without_the_books(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(texts, "MAX_TEXT_MATCHES", 0)
    changes.create_books([build_book(genre=genre) for genre in ("Novel", "a novel", "Essay")], ACTOR, now=NOW)
    books = Book.objects.filter(find_words(["no"], "genre"))
    with django_assert_num_queries(1) as queries:
        assert count_books(books) == 2
    assert "books_book" not in queries[0]["sql"]
    # SQLite looks up the texts of each book only for a page.
    assert ["IN (SELECT book_id" in str(some.query) for some in (books, books[:1])] == [True, not is_sqlite()]
    narrowed = [books.filter(find_words(["a"])), books.exclude(available=False), books.filter(title="X"), books[:1]]
    more_tables: Any = books.extra(tables=["books_lentbook"])
    narrowed = [*narrowed, more_tables]
    assert [count_books(some) for some in narrowed] == [some.count() for some in narrowed] == [2, 2, 0, 1, 0]


@given(TEXTS)
def test_a_text_that_is_folded_stays_as_it_is(text: str) -> None:
    loose = fold_loosely(text)
    assert (fold_loosely(fold(text)), "\n" in loose) == (loose, False)


@pytest.mark.usefixtures("db")
@pytest.mark.unannounced
@pytest.mark.unrecorded
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite plans a filter without statistics")
def test_the_plan_of_a_filter_does_not_depend_on_the_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    # An index that the transaction has made is not used. The second call makes none.
    call_command("seed_books", count=50)
    call_command("seed_books", count=10_000)
    monkeypatch.setattr(texts, "_sample", None)
    by_index, in_order = ["book_search_text", "books_book_pkey"], ["books_book_pkey", "books_searchtext_pkey"]
    plans = []
    for target in (0, 1, 10, 1_000):
        with connection.cursor() as cursor:
            for column in FIELDS:
                cursor.execute(f"ALTER TABLE books_searchtext ALTER {column} SET STATISTICS {target}")
                cursor.execute(f"ALTER TABLE books_book ALTER {FOLDED_COLUMNS[column]} SET STATISTICS {target}")
            cursor.execute("ANALYZE books_book")
            cursor.execute("ANALYZE books_searchtext")
        # No book has "zq", but it has no trigram either: the index would be read as a whole.
        conditions = [find_words(words, "author") for words in (["smith"], ["an"], ["zq"], ["smith", "zq"])]
        plans.append([list_indexes(condition) for condition in (*conditions, find_strictly("smith", "author"))])
    assert plans == [[by_index, in_order, in_order, by_index, by_index]] * len(plans)
    # It decides alone: PostgreSQL would read these in the order of the list.
    assert list_indexes(find_strictly("mystery", "genre")) == ["books_book_pkey"]
    monkeypatch.setattr(texts, "RARE_LIMIT", 10**9)
    assert list_indexes(find_strictly("mystery", "genre")) == by_index


def list_indexes(condition: Q) -> list[str]:
    """Returns the indexes by which PostgreSQL finds the first hundred books."""
    plan = Book.objects.filter(condition).order_by("pk")[:100].explain()
    return sorted(set(re.findall(r"(?:using|Scan on) (book\w*_(?:text|pkey))", plan)))


@pytest.mark.parametrize(
    ("count", "books", "expected"),
    [(0, 0, True), (2, 10**6, True), (3, 10**6, False), (22, 10**4, True), (23, 10**4, False)],
)
def test_a_text_is_rare_by_the_square_of_its_share(
    monkeypatch: pytest.MonkeyPatch, count: int, books: int, expected: bool
) -> None:
    """Of the books of a whole sample, which are 500."""
    titles = "\0".join(["emma"] * count)
    monkeypatch.setattr(texts, "_sample", texts.Sample(inf, books, 500, {"": titles, "title": titles}))
    assert texts.is_rare(["emma"], "title") is expected


@pytest.mark.usefixtures("db", "scarcity")
def test_the_start_of_an_isbn_matches_exactly() -> None:
    for isbn in ("080442957X", "0804", "a%", "ab", "108044"):
        create_book(title=isbn, isbn=isbn)
    assert find_isbns("0804") == ["080442957X", "0804"]
    assert find_isbns("080442957x") == []
    assert find_isbns("a%") == ["a%"]


def find_isbns(text: str) -> list[str]:
    return [book.isbn for book in Book.objects.filter(isbn_prefix_condition(text)).order_by("pk")]
