"""The addresses of the pages of books, with the permissions that open them, and which of them the bar links to."""

from django.utils.translation import gettext_lazy as _

from books.admin.book.catalogue import show_entry
from books.admin.book.deleted_books import restore_deleted_book, show_deleted_books
from books.admin.book.history import show_state
from books.admin.book.recent_changes import show_recent_changes
from books.admin.book.suggestions import show_suggestions, show_warnings
from books.admin.files.exports import download_workbook, export_list
from books.admin.files.imports import delete_file, receive_chunk, show_check, show_import, show_mapping, show_returned
from books.admin.lending import change_state, find_scanned, lend_shown_book, show_lending, show_scan
from books.admin.list.genres import show_genres
from books.admin.list.settings import choose_default_view, delete_view, save_settings, save_view
from books.admin.operations.bulk_edit import show_bulk_edit
from books.admin.operations.duplicates import merge, show_duplicates
from books.admin.operations.views import confirm_cancel, show_operation, show_operations, show_progress, undo
from books.admin.views import SEE_BOOKS, build_route
from books.permissions import ADD_BOOK, BOOK_ACTIONS, CHANGE_BOOK, HISTORY_ACTIONS, OPERATION_ACTIONS, OPERATION_VIEWERS
from library_site.templatetags.navigation import BAR_PAGES, MORE_PAGES, BarPage

EXPORT, LEND, IMPORT, MERGE = (BOOK_ACTIONS[name] for name in ("export", "lend", "import", "merge"))

URLS = [
    build_route("export/", export_list, "export_books", *EXPORT),
    build_route("operations/<int:operation_id>/workbook/", download_workbook, "export_books_workbook", *EXPORT),
    build_route("import/", show_import, "import_books", *IMPORT),
    build_route("import/<int:file_id>/chunk/", receive_chunk, "import_books_chunk", *IMPORT),
    build_route("import/<int:file_id>/mapping/", show_mapping, "import_books_mapping", *IMPORT),
    build_route("import/<int:file_id>/check/", show_check, "import_books_check", *IMPORT),
    build_route("import/<int:file_id>/delete/", delete_file, "import_books_delete", *IMPORT),
    build_route("import/<int:file_id>/refused/", show_returned, "import_books_refused", *IMPORT),
    build_route("scan/", show_scan, "scan", *SEE_BOOKS),
    build_route("lend/", show_lending, "lend", *LEND),
    build_route("lend/find/", find_scanned, "lend_find", *LEND),
    build_route("lend/change/", change_state, "lend_change", *LEND),
    build_route("<int:book_id>/lend/", lend_shown_book, "books_book_lend", *LEND),
    build_route("columns/", save_settings, "books_book_columns", *SEE_BOOKS),
    build_route("views/save/", save_view, "books_book_save_view", *SEE_BOOKS),
    build_route("views/delete/", delete_view, "books_book_delete_view", *SEE_BOOKS),
    build_route("views/default/", choose_default_view, "books_book_default_view", *SEE_BOOKS),
    build_route("genres/", show_genres, "genres", *SEE_BOOKS),
    build_route("bulk_edit/", show_bulk_edit, "bulk_edit", *OPERATION_ACTIONS["create"]),
    build_route("operations/", show_operations, "operations", *OPERATION_VIEWERS),
    build_route("operations/<int:operation_id>/", show_operation, "operation"),
    build_route("operations/<int:operation_id>/progress/", show_progress, "operation_progress"),
    build_route("operations/<int:operation_id>/cancel/", confirm_cancel, "operation_cancel"),
    build_route("operations/<int:operation_id>/undo/", undo, "operation_undo"),
    build_route("duplicates/", show_duplicates, "duplicates", *MERGE),
    build_route("duplicates/merge/", merge, "merge", *MERGE),
    build_route("changes/", show_recent_changes, "recent_changes", *HISTORY_ACTIONS["list"]),
    build_route("deleted/", show_deleted_books, "deleted_books", *HISTORY_ACTIONS["retrieve"]),
    build_route("<path:object_id>/history/state/", show_state, "books_book_state", *HISTORY_ACTIONS["retrieve"]),
    build_route("<path:object_id>/restore/", restore_deleted_book, "books_book_restore", *HISTORY_ACTIONS["retrieve"]),
    build_route("suggestions/", show_suggestions, "books_book_suggestions", ADD_BOOK, CHANGE_BOOK),
    build_route("catalogue/", show_entry, "books_book_catalogue", *BOOK_ACTIONS["create"]),
    build_route("warnings/", show_warnings, "books_book_warnings", ADD_BOOK, CHANGE_BOOK),
]

BAR_PAGES += [
    BarPage(_("Books"), "books_book_changelist", SEE_BOOKS),
    BarPage(_("Lend"), "lend", LEND),
    BarPage(_("Import"), "import_books", IMPORT),
    BarPage(_("Changes"), "recent_changes", HISTORY_ACTIONS["list"]),
]
MORE_PAGES += [
    BarPage(_("Possible duplicates"), "duplicates", MERGE),
    BarPage(_("Genres"), "genres", SEE_BOOKS),
    BarPage(_("Deleted books"), "deleted_books", HISTORY_ACTIONS["retrieve"]),
    BarPage(_("Changes of many books"), "operations", OPERATION_VIEWERS),
]
