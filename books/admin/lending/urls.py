"""The addresses of the scan box and of lending."""

from books.admin.lending.scan import show_scan
from books.admin.lending.views import change_state, find_scanned, lend_shown_book, show_lending
from books.admin.views import CHANGE_BOOK, SEE_BOOKS, build_route

LENDING_URLS = [
    build_route("scan/", show_scan, "scan", *SEE_BOOKS),
    build_route("lend/", show_lending, "lend", CHANGE_BOOK),
    build_route("lend/find/", find_scanned, "lend_find", CHANGE_BOOK),
    build_route("lend/change/", change_state, "lend_change", CHANGE_BOOK),
    build_route("<int:book_id>/lend/", lend_shown_book, "books_book_lend", CHANGE_BOOK),
]
