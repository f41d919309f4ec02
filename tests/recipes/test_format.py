"""A format that was added is found by its content, and downloaded by clients and librarians."""

from pathlib import Path

import httpx
import pytest
from django.core.management import CommandError, call_command

from books.models import Book
from tests.support.books import build_book

CONTENT = "%0 Book\n%T Emma\n%A Jane Austen\n%D 1815\n%@ 9780141439587\n%K Novel\n\n%0 Book\n%T Persuasion\n"


def test_a_file_of_others_is_imported(db: None, tmp_path: Path) -> None:
    file, rejected = tmp_path / "books.enw", tmp_path / "rejected"
    file.write_text(CONTENT)
    with pytest.raises(CommandError, match="1 record not imported"):
        call_command("import_books", file, failed=rejected)
    assert [(book.title, book.year, book.available) for book in Book.objects.all()] == [("Emma", 1815, True)]
    assert rejected.read_text(encoding="utf-8-sig").splitlines()[1].startswith("8,author: It is missing.")


def test_a_list_is_exported(api: httpx.Client) -> None:
    book = api.post("/api/v2/books", json=build_book(title="Emma", isbn="9780141439587")).json()
    response = api.get("/api/v2/books", headers={"Accept": "application/x-endnote-refer"})
    assert response.text.splitlines()[:3] == ["%0 Book", f"%F {book['id']}", "%T Emma"]
    assert "application/x-endnote-refer" in api.get("/openapi/v2.json").text
