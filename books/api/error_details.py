"""Names the book that has an isbn, in the errors of a request that uses it for another book."""

from django.conf import settings
from django.db.models import QuerySet
from rest_framework.request import Request

from books.api.ids import book_path
from books.models import Book
from books.writing.changes import IsbnInUse
from library_site.http.api_errors import ErrorContent, FieldError


class IsbnInUseByBook(IsbnInUse):
    """Another book has this isbn. The error links to it, if it is one of the books that the view shows."""

    def __init__(self, isbn: str, books: QuerySet[Book]) -> None:
        super().__init__(isbn)
        self.books = books

    def get_content(self, request: Request) -> ErrorContent:
        url = find_holder_url(self.isbn, self.books, request)
        detail = FieldError("body", "isbn", name_holder(url) if url else self.message, "unique")
        return ErrorContent(self.status, self.message, [detail], {"Link": f'<{url}>; rel="related"'} if url else {})


def name_holder(url: str) -> str:
    return f"The book at {url} has it"


def find_holder_url(isbn: str, books: QuerySet[Book], request: Request) -> str | None:
    """Returns the URL of the book that has the isbn, or None if it is none of these books."""
    pk = Book.objects.filter(isbn=isbn, pk__in=books.values("pk")).values_list("pk", flat=True).first()
    return f"{settings.PUBLIC_URL}{book_path(request, pk)}" if pk else None
