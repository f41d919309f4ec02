"""What the compiled path asks the database: less than Django would."""

from typing import Any

import httpx
import pytest
from django.db import connection
from django.db.models import Q
from pytest_django import DjangoAssertNumQueries

from books.api.compiled import fetch_page
from books.models import Book
from books.read_model import BookEncoder
from books.search.texts import find_words
from books.serializers import BookSerializer
from library_site.db.keyset import ID_ORDER, Start
from library_site.db.sql import execute, fetch_all
from tests.support.endpoints import create_owner
from tests.support.oauth_flows import create_key_header

INSERT_BOOKS = """
    INSERT INTO books_book (title, author, year, isbn, genre, created_at, updated_at, title_folded, author_folded,
        genre_folded)
    SELECT 'x', 'x', 1, number, 'x', now(), now(), 'x', 'x', 'x' FROM generate_series(1, 5000) AS number
"""


def test_a_book_and_the_key_of_its_reader_are_one_query(
    api: httpx.Client, book: dict[str, Any], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    key = create_key_header(create_owner(), "read")
    address = f"/api/books/{book['id']}"
    # The first use of a key is recorded.
    api.get(address, headers=key)
    for headers in (key, {}):
        with django_assert_num_queries(1):
            assert api.get(address, headers=headers).json() == book
        with django_assert_num_queries(1):
            assert api.get("/api/books/987654321", headers=headers).status_code == 404


def test_a_refused_request_is_no_query(api: httpx.Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        for address in ("?skip=-1&author=austen", "/abc", f"/{10**30}"):
            api.get(f"/api/books{address}")
        api.post("/api/books", json={})


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite plans in microseconds")
@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_the_plan_of_a_list_is_kept_for_texts_next_pages_and_offsets_but_not_for_a_year(transactional_db: None) -> None:
    """PostgreSQL plans five times for parameters, and then only if another plan would be faster."""
    encoder = BookEncoder(BookSerializer)
    # In a small table, a plan for any offset costs as much as one for a known offset.
    execute(INSERT_BOOKS)
    execute("ANALYZE books_book")
    next_page = ID_ORDER.sort(Book.objects.all(), Start((1,)), descending=False)
    conditions = (Q(), find_words(["smith"], "author"), Q(year__gt=1))
    lists = [next_page, *(Book.objects.filter(condition).order_by("pk") for condition in conditions)]
    for books in lists * 7:
        fetch_page(books[:10], encoder)
        fetch_page(Book.objects.order_by("pk")[5:15], encoder)
    statement = "SELECT generic_plans > 0 FROM pg_prepared_statements WHERE statement LIKE '%%LIMIT 10%%'"
    assert fetch_all(statement) == [(True,)] * 4
