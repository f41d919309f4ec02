"""Adds details to errors of books: the invalid field, and the address of the book that has the isbn."""

from rest_framework.request import Request

from books.api.links import book_url
from books.history.states import UnknownVersion
from books.models import Book
from books.writing.changes import IsbnInUse
from library_site.http.refusals import Failure, Problem, Refusal


class WordedRefusal(Refusal):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure

    def to_failure(self, request: object) -> Failure:
        return self.failure


def word_refusal(error: Exception, request: Request) -> Exception:
    """Returns the error for the response. It may be the same error."""
    if isinstance(error, IsbnInUse):
        return WordedRefusal(word_isbn_in_use(error, request))
    if isinstance(error, UnknownVersion):
        problem = Problem("body", "version", str(error), "unknown_version")
        return WordedRefusal(Failure(error.status, error.message, [problem]))
    return error


def word_isbn_in_use(error: IsbnInUse, request: Request) -> Failure:
    holder = find_holder(error.isbn)
    if not holder:
        return Failure(error.status, error.message, [Problem("body", "isbn", error.message, "unique")])
    url = book_url(request, holder)
    problem = Problem("body", "isbn", name_holder(url), "unique")
    return Failure(error.status, error.message, [problem], {"Link": f'<{url}>; rel="related"'})


def name_holder(url: str) -> str:
    return f"The book at {url} has it"


def find_holder(isbn: str) -> int | None:
    """Returns the id of the book that has the isbn, or None if it no longer exists."""
    return Book.objects.filter(isbn=isbn).values_list("pk", flat=True).first()
