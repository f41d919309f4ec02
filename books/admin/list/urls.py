"""The addresses of what belongs to the list of books."""

from books.admin.list.genres import show_genres
from books.admin.list.settings import choose_default_view, delete_view, save_settings, save_view
from books.admin.views import SEE_BOOKS, build_route

LIST_URLS = [
    build_route("columns/", save_settings, "books_book_columns", *SEE_BOOKS),
    build_route("views/save/", save_view, "books_book_save_view", *SEE_BOOKS),
    build_route("views/delete/", delete_view, "books_book_delete_view", *SEE_BOOKS),
    build_route("views/default/", choose_default_view, "books_book_default_view", *SEE_BOOKS),
    build_route("genres/", show_genres, "genres", *SEE_BOOKS),
]
