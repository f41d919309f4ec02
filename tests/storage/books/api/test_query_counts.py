"""The number of queries that a response takes."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from books.writing import changes
from tests.support.books import ACTOR, EMPTY_SAMPLE, build_book


def test_a_list_of_any_length_is_one_query(
    api: httpx.Client, django_assert_num_queries: DjangoAssertNumQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite, a query for each text first checks whether few books match."""
    monkeypatch.setattr("books.search.texts._sample", EMPTY_SAMPLE)
    for count in (0, 20):
        changes.create_books([build_book() for _ in range(count)], ACTOR, now=datetime.now(UTC))
        for query, filters in (("", 0), ("&skip=1", 0), ("&author=austen&genre=novel", 2)):
            with django_assert_num_queries(1 + (filters if connection.vendor == "sqlite" else 0)):
                response = api.get(f"/api/books?limit=500{query}")
            assert len(response.json()) == max(count - query.count("skip"), 0)


def test_a_book_is_one_query(
    api: httpx.Client, book: dict[str, Any], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        api.get(f"/api/books/{book['id']}")
    with django_assert_num_queries(1):
        api.get("/api/books/987654321")


def test_a_refused_request_is_no_query(api: httpx.Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        api.get("/api/books?skip=-1&author=austen")
        api.get("/api/books/abc")
        api.get(f"/api/books/{10**30}")
        api.post("/api/books", json={})
