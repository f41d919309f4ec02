"""Lists deleted books and restores them."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _

from books.admin.book.forms import format_isbn_in_use
from books.admin.book.history import find_known_book, redirect_unknown
from books.admin.descriptions import describe_entries, history_address
from books.admin.pager import PAGE_SIZE, Pager
from books.admin.views import find_librarian, render_page
from books.history.change_pages import read_deleted_page
from books.history.cursors import TimeCursor
from books.models import Book
from books.writing import changes


def show_deleted_books(request: HttpRequest) -> HttpResponse:
    pager = Pager(request.GET, TimeCursor, is_newest_first=True)
    return render_page(
        request,
        "deleted_books",
        _("Deleted books"),
        changes=describe_entries(pager.read(read_deleted_page, PAGE_SIZE)),
        pager=pager,
        may_restore=request.user.has_perm("books.add_book"),
    )


def restore_deleted_book(request: HttpRequest, object_id: str) -> HttpResponse:
    """Restores the book on a POST. Every request is redirected to the history of the book."""
    if not request.user.has_perm("books.add_book"):
        raise PermissionDenied
    book = find_known_book(object_id)
    if book is None:
        return redirect_unknown(request)
    if request.method == "POST":
        restore_and_report(request, book.pk)
    return HttpResponseRedirect(history_address(book.pk))


def restore_and_report(request: HttpRequest, pk: int) -> None:
    try:
        book = changes.restore_book(pk, find_librarian(request), timezone.now())
    except changes.IsbnInUse as error:
        messages.error(request, format_html(_("Nothing was changed. {}"), describe_isbn_in_use(error)))
    except (changes.BookExists, changes.BookNotFound, changes.ConcurrentChange) as error:
        messages.error(request, _("Nothing was changed. %(reason)s.") % {"reason": _(error.message)})
    else:
        messages.success(request, _("The book “%(title)s” is restored.") % {"title": book.title})


def describe_isbn_in_use(error: changes.IsbnInUse) -> str:
    holder = Book.objects.filter(isbn=error.isbn).values_list("pk", "title").first()
    return format_isbn_in_use(*holder) if holder else f"{_(error.message)}."
