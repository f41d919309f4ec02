"""The addresses of books in version 2."""

from functools import partial
from typing import Any

from django.urls import URLPattern, path

from books.api.bulk import MAX_BODY_BYTES
from books.api.compiled import compile_pattern
from books.api.v2.history import HistoryViewSet, TimePagination
from books.api.v2.operations import OperationViewSet
from books.api.v2.views import BookViewSetV2
from library_site.api.shipped import ship_patterns


def make_patterns(books: type[BookViewSetV2]) -> list[URLPattern]:
    """Returns the URL patterns of a version with this viewset. A later version calls it with its own viewset."""
    actions: dict[str, Any] = {"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"}
    shown, begun = books.serializer_class, {"create": books.operation_serializer}
    history = partial(HistoryViewSet.as_view, book_serializer=shown)
    operations = partial(OperationViewSet.as_view, book_serializer=shown, body_serializers=begun)
    return [
        path("books", books.as_view({"get": "list", "post": "create"}), name="books"),
        path("books/bulk", books.as_view({"post": "bulk"}), name="bulk"),
        path("books/<str:book_id>", books.as_view(actions), name="book"),
        path("books/<str:book_id>/history", history({"get": "retrieve"}), name="book-history"),
        path("books/<str:book_id>/revert", books.as_view({"post": "revert"}), name="book-revert"),
        path("books/<str:book_id>/restore", books.as_view({"post": "restore"}), name="book-restore"),
        path("operations", operations({"get": "list", "post": "create"}), name="operations"),
        path("operations/<int:operation_id>", operations({"get": "retrieve"}), name="operation"),
        path("operations/<int:operation_id>/cancel", operations({"post": "cancel"}), name="operation-cancel"),
        path("operations/<int:operation_id>/undo", operations({"post": "undo"}), name="operation-undo"),
        path("changes", history({"get": "list"}, pagination_class=TimePagination), name="changes"),
    ]


urlpatterns = ship_patterns(make_patterns(BookViewSetV2), compile_pattern)
body_limits = {"/books/bulk": MAX_BODY_BYTES}
