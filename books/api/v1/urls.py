"""The addresses of books in version 1."""

from typing import Any

from django.urls import URLPattern, path

from books.api.compiled import compile_pattern
from books.api.v1.views import BookViewSetV1
from library_site.api.shipped import ship_patterns


def make_patterns(books: type[BookViewSetV1]) -> list[URLPattern]:
    """Returns the URL patterns of the version with this viewset."""
    actions: dict[str, Any] = {"get": "retrieve", "put": "update", "delete": "destroy"}
    return [
        path("books", books.as_view({"get": "list", "post": "create"}), name="books"),
        path("books/<str:book_id>", books.as_view(actions), name="book"),
    ]


urlpatterns = ship_patterns(make_patterns(BookViewSetV1), compile_pattern)
