"""`seed_books`, which adds the first books to a library."""

from collections.abc import Mapping

import httpx
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from stdnum import isbn

from books.files import seeds
from books.management.commands import seed_books
from books.models import Book

# `seed_books` publishes no events without the option `--events`.
pytestmark = [pytest.mark.unannounced, pytest.mark.unrecorded]

COUNT_STATISTICS_SQL = {
    "postgresql": "SELECT count(DISTINCT tablename) FROM pg_stats WHERE tablename = 'book_by_title'",
    "sqlite": "SELECT count(*) FROM sqlite_stat1 WHERE idx = 'book_by_title'",
}
CLASSICS = list(seeds.read_classics())


@pytest.fixture(autouse=True)
def few_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faker takes a second to name all authors and places."""
    for name in ("LOCALES", "PLACE_LOCALES"):
        monkeypatch.setattr(seeds, name, ["en_GB"])


def seed(count: int, **options: int | bool) -> None:
    call_command("seed_books", count=count, **options)


def list_books() -> list[tuple[str, str, int, str, str]]:
    return list(Book.objects.order_by("isbn").values_list("title", "author", "year", "isbn", "genre"))


def test_the_classics_are_at_least_three_hundred_whole_books() -> None:
    assert 300 <= len(CLASSICS) == len({(book["title"], book["author"]) for book in CLASSICS})
    assert all(all(book.values()) for book in CLASSICS)


def test_every_isbn_is_valid_and_of_our_own_range() -> None:
    numbers = [book["isbn"] for book in seeds.iter_books(len(CLASSICS) + 500, seed=3)]
    assert all(isbn.is_valid(number) and number.startswith("9799") for number in numbers)
    assert len(set(numbers)) == len(numbers)


def test_the_first_books_are_real_ones(api: httpx.Client) -> None:
    seed(1)
    (first,) = api.get("/api/books").json()
    assert (first["title"], first["author"], first["year"]) == ("Pride and Prejudice", "Jane Austen", 1813)
    seed(10, if_empty=True)
    assert len(list_books()) == 1


@pytest.mark.usefixtures("db")
def test_only_books_that_are_not_there_are_added(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeds, "read_classics", lambda: iter(CLASSICS[:3]))
    seed(2)
    seed(5)
    before = list_books()
    seed(5)
    assert list_books() == before
    assert capsys.readouterr().out.endswith("3 books added, 2 were there.\n0 books added, 5 were there.\n")
    seed(5, seed=1)
    assert len(list_books()) == 7


def test_a_number_out_of_bounds_is_refused() -> None:
    for count, number in ((-1, 0), (10_000_001, 0), (1, 9), (1, -1)):
        with pytest.raises(CommandError, match="takes 0 to"):
            seed(count, seed=number)


@pytest.mark.usefixtures("db")
def test_a_large_seeding_restores_the_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_books, "SEED_BATCH", 100)
    before = describe_indexes()
    seed(150)
    assert describe_indexes() == before
    assert Book.objects.count() == 150
    with connection.cursor() as cursor:
        cursor.execute(COUNT_STATISTICS_SQL[connection.vendor])
        assert cursor.fetchone() == (1,)


def describe_indexes() -> Mapping[str, object]:
    with connection.cursor() as cursor:
        return connection.introspection.get_constraints(cursor, Book._meta.db_table)
