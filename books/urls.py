"""The addresses of books in each version."""

from django.urls import path

from books.versions.v1.views import Version1
from books.versions.v2.views import Version2

version_1 = [
    path("books", Version1.as_view({"get": "list", "post": "create"}), name="books"),
    path(
        "books/<str:book_id>",
        Version1.as_view({"get": "retrieve", "put": "update", "delete": "destroy"}),
        name="book",
    ),
]
version_2 = [
    path("books", Version2.as_view({"get": "list", "post": "create"}), name="books"),
    path("books/bulk", Version2.as_view({"post": "change_many"}), name="bulk"),
    path(
        "books/<str:book_id>",
        Version2.as_view({"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"}),
        name="book",
    ),
]
