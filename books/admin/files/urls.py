"""The addresses of exports and imports."""

from books.admin.files.exports import download_workbook, export_list
from books.admin.files.imports import delete_file, receive_chunk, show_check, show_import, show_mapping, show_returned
from books.admin.views import IMPORT_BOOKS, SEE_BOOKS, build_route

FILE_URLS = [
    build_route("export/", export_list, "export_books", *SEE_BOOKS),
    build_route("operations/<int:operation_id>/workbook/", download_workbook, "export_books_workbook", *SEE_BOOKS),
    build_route("import/", show_import, "import_books", IMPORT_BOOKS),
    build_route("import/<int:file_id>/chunk/", receive_chunk, "import_books_chunk", IMPORT_BOOKS),
    build_route("import/<int:file_id>/mapping/", show_mapping, "import_books_mapping", IMPORT_BOOKS),
    build_route("import/<int:file_id>/check/", show_check, "import_books_check", IMPORT_BOOKS),
    build_route("import/<int:file_id>/delete/", delete_file, "import_books_delete", IMPORT_BOOKS),
    build_route("import/<int:file_id>/refused/", show_returned, "import_books_refused", IMPORT_BOOKS),
]
