"""Helps while a user fills in the form of a book: suggestions and warnings."""

from django.contrib import admin
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse

from books.admin.book.forms import write_isbn
from books.book.texts import fold
from books.models import FOLDED_COLUMNS, SORT_PREFIX_LENGTH, Book
from books.search.matches import LAST_CHARACTER
from library_site.db.integers import parse_integer
from library_site.db.sql import fetch_all

MAX_SUGGESTIONS = 10
SUGGESTED_FIELDS = ("genre", "author")
# Reads one index entry for each suggestion, however many books have it.
SUGGESTIONS_SQL = """
    WITH RECURSIVE suggestions(prefix) AS (
        SELECT min({prefix}) FROM books_book WHERE {prefix} >= %s AND {prefix} < %s
        UNION ALL
        SELECT (SELECT min({prefix}) FROM books_book WHERE {prefix} > suggestions.prefix AND {prefix} < %s)
        FROM suggestions WHERE suggestions.prefix IS NOT NULL
    )
    SELECT (SELECT {field} FROM books_book WHERE {prefix} = suggestions.prefix ORDER BY id LIMIT 1)
    FROM suggestions WHERE suggestions.prefix IS NOT NULL LIMIT %s
"""


def suggest(field: str, text: str) -> list[str]:
    """Returns texts of the field that begin with this text, ignoring case. Each is spelled as in one of the books."""
    first = fold(text.strip())[:SORT_PREFIX_LENGTH]
    if not first or "\0" in first:
        return []
    sql = SUGGESTIONS_SQL.format(prefix=compile_prefix(field), field=field)
    last = f"{first}{LAST_CHARACTER}"
    return [text for (text,) in fetch_all(sql, [first, last, last, MAX_SUGGESTIONS])]


def compile_prefix(field: str) -> str:
    function = "SUBSTR({}, 1, {})" if connection.vendor == "sqlite" else "LEFT({}, {})"
    return function.format(FOLDED_COLUMNS[field], SORT_PREFIX_LENGTH)


def show_suggestions(request: HttpRequest) -> HttpResponse:
    """Returns a JSON array of texts that begin with `text`, from the field `field` of other books."""
    field = request.GET.get("member", "")
    texts = suggest(field, request.GET.get("text", "")) if field in SUGGESTED_FIELDS else []
    return JsonResponse(texts, safe=False)


def show_warnings(request: HttpRequest) -> HttpResponse:
    """Returns the warnings about a form that is not saved yet, as parts of the page. `book` is the book's id."""
    book = Book.objects.filter(pk=parse_integer(request.GET.get("book", "")) or 0).first()
    form_class = admin.site.get_model_admin(Book).get_form(request, book, change=book is not None)
    form = form_class(request.GET, instance=book)
    isbn_problems = form.errors.as_data().get("isbn", [])
    taken = [message for problem in isbn_problems if problem.code == "unique" for message in problem.messages]
    isbn = write_isbn(form.cleaned_data.get("isbn", ""))
    context = {"form": form, "isbn": isbn, "taken": taken, "is_live": True}
    return TemplateResponse(request, "admin/books/book_admin/live_warnings.html", context)
