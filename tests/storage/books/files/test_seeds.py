"""`seed_books`, which adds the first books to a library."""

import csv
from collections.abc import Mapping

import httpx
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from stdnum import isbn

from books.files import seeds
from books.models import Book
from tests.support.books import build_book

# `seed_books` publishes no events without the option `--events`.
pytestmark = [pytest.mark.unannounced, pytest.mark.unrecorded]

COUNT_STATISTICS_SQL = {
    "postgresql": "SELECT count(DISTINCT tablename) FROM pg_stats WHERE tablename = 'book_by_title'",
    "sqlite": "SELECT count(*) FROM sqlite_stat1 WHERE idx = 'book_by_title'",
}
CLASSICS = list(seeds.read_classics())


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


def test_the_same_call_twice_adds_nothing(api: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    seed(len(CLASSICS) + 20)
    before = list_books()
    seed(len(CLASSICS) + 20)
    assert list_books() == before
    assert capsys.readouterr().out.endswith(f"0 books added, {len(CLASSICS) + 20} were there.\n")


def test_a_greater_count_adds_the_rest(api: httpx.Client) -> None:
    seed(10)
    seed(len(CLASSICS) + 5)
    assert len(list_books()) == len(CLASSICS) + 5


def test_another_seed_adds_other_books(api: httpx.Client) -> None:
    seed(len(CLASSICS) + 5)
    seed(len(CLASSICS) + 5, seed=1)
    assert len(list_books()) == len(CLASSICS) + 10


def test_if_empty_adds_nothing_to_a_library_with_books(api: httpx.Client) -> None:
    api.post("/api/books", json=build_book())
    seed(10, if_empty=True)
    assert len(list_books()) == 1


@pytest.mark.parametrize(
    "options", [{"count": -1}, {"count": 10_000_001}, {"count": 1, "seed": 9}, {"count": 1, "seed": -1}]
)
def test_a_number_out_of_bounds_is_refused(api: httpx.Client, options: dict[str, int]) -> None:
    with pytest.raises(CommandError, match="takes 0 to"):
        call_command("seed_books", **options)


def test_seeded_books_are_found_by_their_folded_names(api: httpx.Client) -> None:
    seed(len(CLASSICS))
    matches = api.get("/api/books", params={"author": "ÉMILE ZOLA"}).json()
    assert {book["author"] for book in matches} == {"Émile Zola"}


def test_a_large_seeding_restores_the_indexes(api: httpx.Client) -> None:
    before = describe_indexes()
    seed(10_050)
    assert describe_indexes() == before
    assert Book.objects.count() == 10_050
    with connection.cursor() as cursor:
        cursor.execute(COUNT_STATISTICS_SQL[connection.vendor])
        assert cursor.fetchone() == (1,)


def describe_indexes() -> Mapping[str, object]:
    with connection.cursor() as cursor:
        return connection.introspection.get_constraints(cursor, Book._meta.db_table)


def test_the_data_file_names_its_columns() -> None:
    with seeds.CLASSICS_FILE.open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == ["title", "author", "year", "isbn", "genre"]
