"""A library that holds BOOKS and one endpoint, and is restored between requests whose writes are committed."""

import json
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction

from books.models import Book
from library_site.db.sql import execute
from oauth.models import APIKey
from tests.support import book_audit
from tests.support.books import build_book
from tests.support.requests import BOOKS, Request, VersionSpelling

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
NEW_BOOK = json.dumps(build_book(isbn="9790000000000")).encode()
VERSION_2 = VersionSpelling("/api/v2")
PLAIN_REQUESTS = [
    Request(method, path, spelling, query, headers, credential, body)
    for spelling in (VersionSpelling("/api"), VERSION_2)
    for credential in ("none", "key", "token")
    for method, path, query, headers, body in [
        ("GET", "/books", "", {}, b""),
        ("GET", "/books", "author=aus&genre=rom", {}, b""),
        ("GET", "/books/1", "", {}, b""),
        ("GET", "/books/1", "", {"If-None-Match": "*"}, b""),
        ("POST", "/books", "", {}, NEW_BOOK),
        ("PUT", "/books/1", "", {"If-Match": "*"}, NEW_BOOK),
    ]
] + [
    Request("GET", "/books", VERSION_2, "sort=-year&limit=1&fields=id,title&q=a&year_min=1800"),
    Request("PATCH", "/books/1", VERSION_2, body=b'{"year": 2000}'),
]
# The tables that requests write to, children before their parents.
TABLES = ("webhooks_delivery", "webhooks_event", "books_keptanswer", "books_change", "books_book")
# Makes new books have the same ids in every run.
RESET_BOOK_IDS_SQL = {
    "postgresql": "SELECT setval('books_book_id_seq', 100)",
    "sqlite": "UPDATE sqlite_sequence SET seq = 100 WHERE name = 'books_book'",
}


def restore_books() -> None:
    """Deletes what requests have written, stores BOOKS and clears the ledger."""
    with transaction.atomic():
        for table in TABLES:
            execute(f"DELETE FROM {table}")  # noqa: S608  # names of our own tables
        APIKey.objects.update(last_used_at=None)
        Book._base_manager.bulk_create(Book(pk=number, **book, updated_at=NOW) for number, book in enumerate(BOOKS, 1))
        execute(RESET_BOOK_IDS_SQL[connection.vendor])
        book_audit.clear_ledger()


def encode_body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()
