"""The scan box: it opens the only match, numbers several matches, and offers to add a book if there is none."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext

from books.admin.list.words import list_similar_searches
from books.admin.views import render_page
from books.book.isbn import hyphenate_isbn
from books.models import Book
from books.permissions import ADD_BOOK
from books.search.matches import find_first
from books.search.quality import EXPLANATIONS
from books.search.scans import Scan, ScanKind, read_scan

# One match for each digit key.
MAX_NUMBERED_BOOKS = 9


class ScanResult(NamedTuple):
    """The book with this code or None, a message about the code, and the address of the form that adds a book, None if
    none should be added.
    """

    book: Book | None
    message: str = ""
    add_address: str | None = None


def show_scan(request: HttpRequest) -> HttpResponse:
    scan = read_scan(request.GET.get("code", ""))
    is_scanned = scan.kind is not ScanKind.NOTHING
    # One more than the digit keys tells whether there are more.
    books = find_first(Book.objects.all(), scan, MAX_NUMBERED_BOOKS + 1) if is_scanned else []
    if scan.layout:
        messages.warning(request, explain_layout(scan.layout))
    if len(books) == 1:
        return HttpResponseRedirect(reverse("admin:books_book_change", args=[books[0].pk]))
    is_absent = is_scanned and not books
    return render_page(
        request,
        "scan",
        gettext("Scan or find a book"),
        scan=scan,
        books=books[:MAX_NUMBERED_BOOKS],
        similar_searches=list_similar_searches(scan) if is_absent else [],
        absence=explain_absence(scan, request.user.has_perm(ADD_BOOK)) if is_absent else None,
        has_more=len(books) > MAX_NUMBERED_BOOKS,
        list_address=reverse("admin:books_book_changelist", query={"q": scan.text}),
    )


def explain_absence(scan: Scan, may_add: bool) -> ScanResult:
    if scan.kind in EXPLANATIONS:
        return ScanResult(None, str(EXPLANATIONS[scan.kind]))
    if scan.kind is ScanKind.ISBN:
        isbn = hyphenate_isbn(scan.isbn13)
        explanation = gettext("No book has the ISBN %(isbn)s.") % {"isbn": isbn}
        return ScanResult(None, explanation, build_add_address(isbn=isbn) if may_add else None)
    if scan.kind is ScanKind.ID:
        return ScanResult(None, gettext("No book has the ID %(number)d.") % {"number": scan.number})
    return ScanResult(
        None,
        gettext("No book has all these words in title, author and genre."),
        build_add_address(title=scan.text) if may_add else None,
    )


def explain_layout(layout: str) -> str:
    message = gettext(
        "The code arrived as other characters: this computer has the keyboard layout “%(layout)s”, and the scanner is"
        " set to another one. The code was read all the same."
    )
    return message % {"layout": gettext(layout)}


def build_add_address(**values: Any) -> str:
    return reverse("admin:books_book_add", query=values)
