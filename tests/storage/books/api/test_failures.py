"""What a client is answered when the library itself fails."""

import json
import os
from typing import Any

import httpx
from django.db import connection

from tests.support.books import build_book
from tests.support.forked_commands import run_forked

REQUEST_ALL = """
import httpx, json
from library_site.wsgi import application

with httpx.Client(transport=httpx.WSGITransport(application), base_url="http://127.0.0.1") as client:
    answers = [
        client.get("/"),
        client.get("/api/books"),
        client.get("/api/books/1"),
        client.post("/api/books", json={"title": "", "author": "", "year": 0, "isbn": "", "genre": ""}),
        client.put("/api/books/1", json={}),
        client.delete("/api/books/1"),
    ]
print(json.dumps([[answer.status_code, answer.json()] for answer in answers]))
"""


def test_an_unexpected_failure_shows_no_internals(api: httpx.Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE books_book ADD COLUMN cellar integer DEFAULT 0 CHECK (cellar > 0)")
    response = api.post("/api/books", json=build_book())
    assert (response.status_code, response.json()) == (500, {"detail": "Internal Server Error"})
    assert response.headers["Content-Type"] == "application/json"


def test_a_failure_leaves_nothing_behind(api: httpx.Client, book: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE books_book ADD COLUMN cellar integer CHECK (title <> 'Dracula')")
    response = api.put(f"/api/books/{book['id']}", json={"author": "Bram Stoker", "title": "Dracula"})
    assert response.status_code == 500
    assert api.get("/api/books").json() == [book]


MISSING_DATABASES = {
    "sqlite": "sqlite:////nowhere/library.sqlite3",
    "postgresql": "postgresql://nobody@127.0.0.1:1/library",
}


def test_a_library_without_its_database_answers_503() -> None:
    environment = os.environ | {"DATABASE_URL": MISSING_DATABASES[connection.vendor]}
    process = run_forked(environment, "shell", "-v0", "-c", REQUEST_ALL)
    root, *books = json.loads(process.stdout)
    assert root[0] == 200
    assert books == [[503, {"detail": "The library is out of reach, try again later"}]] * 5
