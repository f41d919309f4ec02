"""Helps while a user fills in the form of a book: suggestions and warnings."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse

from books.admin.book.forms import write_isbn
from books.models import Book
from books.search.suggestions import SUGGESTED_FIELDS, suggest
from library_site.db.integers import parse_integer


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
