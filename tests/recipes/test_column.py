"""A column of the admin's list that was added is hidden until a person chooses it."""

from django.test import Client

from tests.support.books_admin import create_book


def test_a_person_chooses_it(root: Client) -> None:
    create_book(title="Emma")
    address = "/admin/books/book/"
    assert "field-version_column" not in root.get(address).content.decode()
    root.post("/admin/books/book/columns/", {"columns": ["author", "version"], "rows": "50"})
    assert '<td class="field-version_column">1</td>' in root.get(address).content.decode()
