"""The addresses of books."""

from django.urls import path

from books.versions import Version1

urlpatterns = [
    path("books", Version1.as_view({"get": "list", "post": "create"}), name="books"),
    path(
        "books/<str:book_id>",
        Version1.as_view({"get": "retrieve", "put": "update", "delete": "destroy"}),
        name="book",
    ),
]
