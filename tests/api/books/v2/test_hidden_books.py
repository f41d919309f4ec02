"""Books that the `get_queryset` of an app hides: no error tells of them."""

import httpx
import pytest

from books.api.v2.views import BookViewSetV2
from books.models import Book
from tests.support.books import build_book
from tests.support.books_admin import create_book, delete_book
from tests.support.history import read_stored

BOOKS = "/api/v2/books"


@pytest.fixture(autouse=True)
def secret_books_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BookViewSetV2, "get_queryset", lambda _: Book.objects.exclude(genre="Secret").order_by("pk"))


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_hidden_book_is_not_restored(api: httpx.Client, is_deleted: bool) -> None:
    book = create_book(genre="Secret")
    if is_deleted:
        delete_book(book)
    before, unknown = read_stored(), api.post(f"{BOOKS}/999/restore")
    response = api.post(f"{BOOKS}/{book.pk}/restore")
    errors = [found.json()["error"] | {"requestId": ""} for found in (response, unknown)]
    assert (response.status_code, errors[0], read_stored()) == (404, errors[1], before)


def test_a_conflict_does_not_name_a_hidden_book(api: httpx.Client) -> None:
    hidden, shown, other = (create_book(isbn=isbn, genre=isbn) for isbn in ("Secret", "Novel", "Poem"))
    for holder in (hidden, shown):
        operation = {"op": "update", "id": other.pk, "book": {"isbn": holder.isbn}}
        for response in (
            api.post(BOOKS, json=build_book(isbn=holder.isbn)),
            api.patch(f"{BOOKS}/{other.pk}", json={"isbn": holder.isbn}),
            api.post(f"{BOOKS}/bulk", json={"operations": [operation]}),
        ):
            is_named = f"{BOOKS}/{holder.pk}" in f"{response.text} {response.headers.get('Link')}"
            assert (response.status_code, is_named) == (409, holder is shown)
