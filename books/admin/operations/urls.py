"""The addresses of operations, the bulk edit and duplicates."""

from books.admin.operations.bulk_edit import show_bulk_edit
from books.admin.operations.duplicates import merge, show_duplicates
from books.admin.operations.views import confirm_cancel, show_operation, show_operations, show_progress, undo
from books.admin.views import BULK_EDIT, MERGE_BOOKS, VIEW_HISTORY, build_route

OPERATION_URLS = [
    build_route("bulk_edit/", show_bulk_edit, "bulk_edit", BULK_EDIT),
    build_route("operations/", show_operations, "operations", VIEW_HISTORY, BULK_EDIT),
    build_route("operations/<int:operation_id>/", show_operation, "operation"),
    build_route("operations/<int:operation_id>/progress/", show_progress, "operation_progress"),
    build_route("operations/<int:operation_id>/cancel/", confirm_cancel, "operation_cancel"),
    build_route("operations/<int:operation_id>/undo/", undo, "operation_undo"),
    build_route("duplicates/", show_duplicates, "duplicates", MERGE_BOOKS),
    build_route("duplicates/merge/", merge, "merge", MERGE_BOOKS),
]
