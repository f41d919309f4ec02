"""The addresses of books in version 1."""

from functools import partial

from django.urls import path

from books.api.compiled import compile_routes
from books.api.v1.views import BookViewSetV1

urlpatterns = [
    path("books", BookViewSetV1.as_view({"get": "list", "post": "create"}), name="books"),
    path(
        "books/<str:book_id>",
        BookViewSetV1.as_view({"get": "retrieve", "put": "update", "delete": "destroy"}),
        name="book",
    ),
]
compiled_routes = partial(compile_routes, urlpatterns)
