"""Which books a scan finds, in which order, and what is proposed where it finds nothing."""

from collections.abc import Iterable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from books.models import SORT_PREFIX_LENGTH, Book
from books.search import texts
from books.search.matches import build_search, find_first, is_equal
from books.search.scans import read_scan
from books.search.similar_texts import find_similar_texts
from tests.support.books_admin import change_book, create_book

pytestmark = pytest.mark.usefixtures("db")

LIMIT = 10


def find_titles(text: str, limit: int = LIMIT) -> list[str]:
    return [book.title for book in find_first(Book.objects.all(), read_scan(text), limit)]


def create_books(*titles: str) -> None:
    for title in titles:
        create_book(title=title)


def test_an_isbn_finds_the_book_under_any_writing() -> None:
    create_book(title="Pride", isbn="978-0-14-143951-8")
    create_book(title="Emma", isbn="9780141439587")
    for text in ("9780141439518", "0-14-143951-3", "978014143951812", "ISBN 9780141439518"):
        assert find_titles(text) == ["Pride"], text


def test_a_book_is_found_by_whatever_stands_in_place_of_its_isbn() -> None:
    texts = ["9780141439519", "9790260000438", "9771234567003", "LOC 17", "17"]
    for text in texts:
        create_book(title=f"Book {text}.", isbn=text)
    assert [find_titles(text)[0] for text in texts] == [f"Book {text}." for text in texts]


def test_equal_titles_come_before_beginnings_before_the_rest() -> None:
    create_books("Emma", "The Emma Book", "Emmaus", "Jane", "EMMA", "Emma and I", "Dilemma")
    assert find_titles("emma") == ["EMMA", "Emma", "Emma and I", "Emmaus", "Dilemma", "The Emma Book"]


def test_a_number_is_an_id_before_it_is_a_title() -> None:
    book = create_book(title="Utopia")
    create_book(title=str(book.pk))
    create_book(title=f"{book.pk} Days")
    assert find_titles(str(book.pk)) == ["Utopia", str(book.pk), f"{book.pk} Days"]
    assert find_titles(f"#{book.pk}") == ["Utopia"]


def test_a_book_whose_title_is_its_id_is_found_once() -> None:
    book = create_book()
    change_book(book, title=str(book.pk))
    other = create_book(title=str(book.pk))
    assert [found.pk for found in find_first(Book.objects.all(), read_scan(str(book.pk)), LIMIT)] == [book.pk, other.pk]


def test_titles_are_compared_beyond_what_the_index_has() -> None:
    long_title = "a" * SORT_PREFIX_LENGTH
    create_books(f"{long_title} one", f"{long_title} one more", f"{long_title} two", f"x {long_title} one")
    assert find_titles(f"{long_title} one") == [
        f"{long_title} one",
        f"{long_title} one more",
        f"x {long_title} one",
    ]


def test_no_book_is_found_twice_and_queries_are_few() -> None:
    create_books("Emma", "Emma", "Emma 17", "17", "17 Emmas")
    for text in ("Emma", "17", "9780141439518", "#17", "100%", "'\"\\%_", "9" * 400, "a " * 400):
        with CaptureQueriesContext(connection) as queries:
            books = find_first(Book.objects.all(), read_scan(text), LIMIT)
        assert len(set(books)) == len(books), text
        assert len(list_own_queries(queries)) <= 5, text
        assert set(books) == set(Book.objects.filter(build_search(read_scan(text)).condition)), text


def list_own_queries(queries: Iterable[dict[str, str]]) -> list[str]:
    """Without those that read SQLite's index of trigrams, one for each word."""
    return [query["sql"] for query in queries if query["sql"].startswith('SELECT "books_book"')]


def test_an_equal_title_is_read_along_its_index() -> None:
    """Of a million books, PostgreSQL's index of trigrams costs 140 ms for a title, SQLite's whole table 190 ms."""
    create_books("Emma")
    books = Book.objects.filter(is_equal("title", "emma"))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # A table of one book would be read whole.
            cursor.execute("SET LOCAL enable_seqscan = off")
    plan = books.explain()
    assert "book_by_title" in plan
    assert "trigrams" not in plan


def test_words_that_many_books_have_find_those_that_have_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """No index finds few books for one of the words. A word may be the beginning of an ISBN."""
    monkeypatch.setattr(texts, "MAX_INDEX_MATCHES", 1)
    create_book(title="Lina", author="Lina", genre="Novel", isbn="x-1")
    create_book(title="Both", author="Lina", genre="Drama", isbn="x-2")
    create_book(title="Drama", author="Nobody", genre="Drama", isbn="9780141439518")
    create_book(title="Number", author="978", genre="Drama", isbn="x-3")
    titles = {"lina drama": ["Both"], "978 drama": ["Number", "Drama"], "no dra": ["Drama"], "lina nothing": []}
    assert {text: find_titles(text) for text in titles} == titles


# Similar texts


BOOKS = [
    ("The Left Hand of Darkness", "Ursula K. Le Guin"),
    ("The Hobbit", "J. R. R. Tolkien"),
    ("Pride and Prejudice", "Jane Austen"),
    ("Emma", "Jane Austen"),
    ("Émile", "Émile Zola"),
    ("Middlemarch", "George Eliot"),
    ("Frankenstein; or, The Modern Prometheus", "Mary Shelley"),
    ("The Late Archive of Delmas", "Hilma Franke"),
    ("Преступление и наказание", "Фёдор Достоевский"),
]
SEARCHES = {
    "the left hand of darkmess": ["The Left Hand of Darkness"],
    "LEFT HAMD": ["The Left Hand of Darkness"],
    "tolkein": ["J. R. R. Tolkien"],
    "jane austin": ["Jane Austen"],
    "jaen austen": ["Jane Austen"],
    "predjudice": ["Pride and Prejudice"],
    "Emmile": ["Émile", "Émile Zola"],
    # No half is right, and the words of another title have most of it together.
    "Middelmarch": ["Middlemarch"],
    # The more similar word comes first, not the shorter text.
    "Frankenstien": ["Frankenstein; or, The Modern Prometheus", "Hilma Franke"],
    "достоевски преступление": [],
    "Достаевский": ["Фёдор Достоевский"],
    "zola tolkien": [],
    # "jane" is not "james" misspelled.
    "james austen": [],
    # The search finds these.
    "austen jane": [],
    "the left hand of darknes": [],
    "emile": [],
    # Only the beginning is the same.
    "hobbyhorse": [],
    "xyzxyz": [],
    "emm": [],
    "": [],
    '"%_*() - AND NOT': [],
}


def test_similar_titles_and_authors_are_found() -> None:
    for title, author in BOOKS:
        create_book(title=title, author=author)
    assert {text: find_similar_texts(text) for text in SEARCHES} == SEARCHES
