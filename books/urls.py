"""The addresses of each version."""

from django.urls import path, re_path

from books.versions.v1.views import Version1
from books.versions.v2.api_keys import APIKeys
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
    path("api-keys", APIKeys.as_view({"get": "list", "post": "create"}), name="api-keys"),
    re_path(
        r"^api-keys/(?P<key_id>[0-9a-f]{12})$",
        APIKeys.as_view({"get": "retrieve", "delete": "destroy"}),
        name="api-key",
    ),
]
