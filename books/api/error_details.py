"""Adds details to errors of books: the invalid field, and the address of the book that has the isbn."""

from rest_framework.request import Request

from books.api.links import book_url
from books.history.states import UnknownVersion
from books.models import Book
from books.writing.changes import IsbnInUse
from library_site.http.api_errors import APIError, ErrorContent, FieldError


class DetailedError(APIError):
    def __init__(self, content: ErrorContent) -> None:
        super().__init__(content.message)
        self.content = content

    def get_content(self, request: object) -> ErrorContent:
        return self.content


def add_details(error: Exception, request: Request) -> Exception:
    """Returns the error for the response. It may be the same error."""
    if isinstance(error, IsbnInUse):
        return DetailedError(describe_isbn_holder(error, request))
    if isinstance(error, UnknownVersion):
        detail = FieldError("body", "version", str(error), "unknown_version")
        return DetailedError(ErrorContent(error.status, error.message, [detail]))
    return error


def describe_isbn_holder(error: IsbnInUse, request: Request) -> ErrorContent:
    holder = find_holder(error.isbn)
    if not holder:
        return ErrorContent(error.status, error.message, [FieldError("body", "isbn", error.message, "unique")])
    url = book_url(request, holder)
    detail = FieldError("body", "isbn", name_holder(url), "unique")
    return ErrorContent(error.status, error.message, [detail], {"Link": f'<{url}>; rel="related"'})


def name_holder(url: str) -> str:
    return f"The book at {url} has it"


def find_holder(isbn: str) -> int | None:
    """Returns the id of the book that has the isbn, or None if it no longer exists."""
    return Book.objects.filter(isbn=isbn).values_list("pk", flat=True).first()
