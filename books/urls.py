"""The addresses of books, each also with a slash at its end."""

from django.urls import re_path

from books.versions import Version1

urlpatterns = [
    re_path(r"^books/?$", Version1.as_view({"get": "list", "post": "create"}), name="books"),
    re_path(
        r"^books/(?P<book_id>[^/]+)/?$",
        Version1.as_view({"get": "retrieve", "put": "update", "delete": "destroy"}),
        name="book",
    ),
]
