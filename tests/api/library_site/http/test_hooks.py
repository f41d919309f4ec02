"""Every hook of REST framework, django-filter and the paginations runs. No error tells of a book that one hides."""

from typing import Any, NoReturn, cast

import httpx
import pytest
from django_filters import RangeFilter
from rest_framework import serializers
from rest_framework.filters import SearchFilter

from books.api.v1.views import BookViewSetV1
from books.api.v2.views import BookViewSetV2
from books.models import Book
from tests.support.books import build_book
from tests.support.books_admin import create_book, delete_book
from tests.support.history import read_stored
from tests.support.variant_fixtures import VERSIONS, Serve

METHODS = {"read": "GET", "list": "GET", "create": "POST", "change": "PUT", "delete": "DELETE"}
# By hook, the requests that run it in actions of our own.
HOOKS = {
    "get_queryset": "read list change delete",
    "filter_queryset": "read list change delete",
    "get_object": "read change delete",
    "check_permissions": "read list create change delete",
    "check_object_permissions": "read change delete",
    "get_serializer": "read list create change",
    "get_serializer_class": "read list create change",
    "get_serializer_context": "read list create change",
    "paginate_queryset": "list",
    "get_paginated_response": "list",
    "perform_create": "create",
    "perform_update": "change",
    "perform_destroy": "delete",
}


class HookCalled(Exception):
    """A hook was called."""


def fail(*_: Any, **__: Any) -> NoReturn:
    raise HookCalled


def send(client: httpx.Client, action: str, address: str) -> httpx.Response:
    """Sends the request for this action of the book at the address."""
    body = build_book() if action in ("create", "change") else None
    return client.request(METHODS[action], "books" if action in ("list", "create") else address, json=body)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_hook_that_fails_fails_each_request(serve: Serve, version: str) -> None:
    address, others = f"books/{create_book().pk}", []
    for hook, actions in HOOKS.items():
        client = serve(version, **{hook: fail})
        statuses = {action: send(client, action, address).status_code for action in actions.split()}
        others += [(hook, *item) for item in statuses.items() if item[1] != 500]
    assert not others


def test_another_field_finds_a_book(serve: Serve) -> None:
    book, client = create_book(isbn="I-1"), serve("v2", lookup_field="isbn")
    client.put("books/I-1", json=build_book(isbn="I-1")).raise_for_status()
    addresses = {"read": "books/I-1", "delete": "books/I-1", "change": f"books/{book.pk}"}
    assert [send(client, *item).status_code for item in addresses.items()] == [200, 204, 404]


def write_genre(view: Any, serializer: Any) -> None:
    serializer.validated_data["genre"] = "Ours"
    BookViewSetV2.perform_create(view, serializer)


def test_hooks_of_a_creation_change_the_response(serve: Serve) -> None:
    writing = {"perform_create": write_genre, "get_success_headers": lambda _, data: {"X-Shelf": data["genre"]}}
    created = send(serve("v2", **writing), "create", "")
    assert (created.json()["genre"], created.headers["X-Shelf"]) == ("Ours", "Ours")
    assert "Location" in created.headers


def test_a_filter_of_several_parameters_filters(serve: Serve) -> None:
    own: Any = type("OwnFilter", (BookViewSetV1.filterset_class,), {"own": cast("Any", RangeFilter)(field_name="year")})
    book = create_book(year=1813)
    create_book(year=1700)
    found = serve("v1", filterset_class=own).get("books", params={"own_min": "1800", "own_max": "1900"}).json()
    assert [row["id"] for row in found] == [book.pk]


class StockSerializer(serializers.ModelSerializer[Book]):
    class Meta:
        model = Book
        fields = ("id", "title")


def test_a_serializer_without_a_choice_of_fields_refuses_one(serve: Serve) -> None:
    client = serve("v2", serializer_class=StockSerializer)
    for address in ("books", f"books/{create_book().pk}"):
        response = client.get(address, params={"fields": "title"})
        assert (response.status_code, '"field":"fields"' in response.text) == (400, True)


def hide_secret_books(view: Any) -> Any:
    return BookViewSetV2.get_queryset(view).exclude(genre="Secret")


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_hidden_book_is_not_restored(serve: Serve, is_deleted: bool) -> None:
    book, client = create_book(genre="Secret"), serve("v2", get_queryset=hide_secret_books)
    if is_deleted:
        delete_book(book)
    before, unknown = read_stored(), client.post("books/999/restore")
    response = client.post(f"books/{book.pk}/restore")
    errors = [found.json()["error"] | {"requestId": ""} for found in (response, unknown)]
    assert (response.status_code, errors[0], read_stored()) == (404, errors[1], before)


def test_a_conflict_does_not_name_a_hidden_book(serve: Serve) -> None:
    client = serve("v2", get_queryset=hide_secret_books)
    hidden, shown, other = (create_book(isbn=isbn, genre=isbn) for isbn in ("Secret", "Novel", "Poem"))
    for holder in (hidden, shown):
        operation = {"op": "update", "id": other.pk, "book": {"isbn": holder.isbn}}
        for response in (
            client.post("books", json=build_book(isbn=holder.isbn)),
            client.patch(f"books/{other.pk}", json={"isbn": holder.isbn}),
            client.post("books/bulk", json={"operations": [operation]}),
        ):
            is_named = f"/books/{holder.pk}" in f"{response.text} {response.headers.get('Link')}"
            assert (response.status_code, is_named) == (409, holder is shown)


def test_a_filter_of_rest_framework_filters_books(serve: Serve) -> None:
    create_book(title="Emma"), create_book(title="Persuasion")
    client = serve("v2", filter_backends=[SearchFilter], search_fields=["title"])
    assert [book["title"] for book in client.get("books?search=mma").json()["results"]] == ["Emma"]
