"""The addresses of books in version 2."""

from django.urls import path

from books.api.bulk import MAX_BODY_BYTES
from books.api.fast_routes import make_routes
from books.api.v2.history import HistoryViewSet
from books.api.v2.operations import OperationViewSet
from books.api.v2.views import BookViewSetV2

urlpatterns = [
    path("books", BookViewSetV2.as_view({"get": "list", "post": "create"}), name="books"),
    path("books/bulk", BookViewSetV2.as_view({"post": "bulk"}), name="bulk"),
    path(
        "books/<str:book_id>",
        BookViewSetV2.as_view({"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"}),
        name="book",
    ),
    path("books/<str:book_id>/history", HistoryViewSet.as_view({"get": "retrieve"}), name="book-history"),
    path("books/<str:book_id>/revert", BookViewSetV2.as_view({"post": "revert"}), name="book-revert"),
    path("books/<str:book_id>/restore", BookViewSetV2.as_view({"post": "restore"}), name="book-restore"),
    path("operations", OperationViewSet.as_view({"post": "create"}), name="operations"),
    path("operations/<int:operation_id>", OperationViewSet.as_view({"get": "retrieve"}), name="operation"),
    path("operations/<int:operation_id>/cancel", OperationViewSet.as_view({"post": "cancel"}), name="operation-cancel"),
    path("operations/<int:operation_id>/undo", OperationViewSet.as_view({"post": "undo"}), name="operation-undo"),
    path("changes", HistoryViewSet.as_view({"get": "list"}), name="changes"),
]
fast_routes = make_routes(BookViewSetV2)
body_limits = {"/books/bulk": MAX_BODY_BYTES}
