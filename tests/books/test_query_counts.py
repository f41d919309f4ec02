"""What an answer costs the database."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from pytest_django import DjangoAssertNumQueries

from books import changes
from tests.books.examples import new_book


@pytest.mark.parametrize("count", [0, 1, 100, 500])
@pytest.mark.parametrize("query", ["", "&skip=1", "&author=austen", "&author=austen&genre=novel"])
def test_a_list_of_any_length_is_one_query(
    api: httpx.Client, django_assert_num_queries: DjangoAssertNumQueries, count: int, query: str
) -> None:
    changes.add_many([new_book() for _ in range(count)], now=datetime.now(UTC))
    with django_assert_num_queries(1):
        answer = api.get(f"/api/books?limit=500{query}")
    assert len(answer.json()) == max(count - query.count("skip"), 0)


def test_a_book_is_one_query(
    api: httpx.Client, book: dict[str, Any], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        api.get(f"/api/books/{book['id']}")
    with django_assert_num_queries(1):
        api.get("/api/books/987654321")


def test_a_refused_question_is_no_query(api: httpx.Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        api.get("/api/books?skip=-1&author=austen")
        api.get("/api/books/abc")
        api.get(f"/api/books/{10**30}")
        api.post("/api/books", json={})
