"""The addresses of the book form, its helpers and its history."""

from books.admin.book.catalogue import show_entry
from books.admin.book.deleted_books import restore_deleted_book, show_deleted_books
from books.admin.book.history import show_state
from books.admin.book.recent_changes import show_recent_changes
from books.admin.book.suggestions import show_suggestions, show_warnings
from books.admin.views import ADD_BOOK, CHANGE_BOOK, VIEW_HISTORY, build_route

BOOK_URLS = [
    build_route("changes/", show_recent_changes, "recent_changes", VIEW_HISTORY),
    build_route("deleted/", show_deleted_books, "deleted_books", VIEW_HISTORY),
    build_route("<path:object_id>/history/state/", show_state, "books_book_state", VIEW_HISTORY),
    build_route("<path:object_id>/restore/", restore_deleted_book, "books_book_restore", VIEW_HISTORY),
    build_route("suggestions/", show_suggestions, "books_book_suggestions", ADD_BOOK, CHANGE_BOOK),
    build_route("catalogue/", show_entry, "books_book_catalogue", ADD_BOOK),
    build_route("warnings/", show_warnings, "books_book_warnings", ADD_BOOK, CHANGE_BOOK),
]
