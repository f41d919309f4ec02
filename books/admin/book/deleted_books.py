"""Lists deleted books and restores them, also from the form of a book that was deleted while a user was editing it."""

from collections.abc import Iterator

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _

from books.admin.book.forms import format_isbn_in_use
from books.admin.book.history import find_known_book, redirect_unknown
from books.admin.descriptions import Link, describe_entries, format_value, history_address, isolate, label_field
from books.admin.pager import PAGE_SIZE, Pager
from books.admin.views import find_librarian, render_page, report_rejected
from books.book.fields import FIELDS
from books.history.change_pages import TIME_CURSOR, read_deleted_page
from books.history.records import MERGED_INTO
from books.models import Book, Change
from books.permissions import ADD_BOOK, VIEW_HISTORY
from books.writing import changes

# The name of the button that restores the book before its form is saved.
RESTORE = "_restore"


def show_deleted_books(request: HttpRequest) -> HttpResponse:
    pager = Pager(request.GET, TIME_CURSOR, is_newest_first=True)
    return render_page(
        request,
        "deleted_books",
        _("Deleted books"),
        changes=describe_entries(pager.read(read_deleted_page, PAGE_SIZE)),
        pager=pager,
        may_restore=request.user.has_perm(ADD_BOOK),
    )


def restore_deleted_book(request: HttpRequest, object_id: str) -> HttpResponse:
    """Restores the book on a POST. Every request is redirected to the history of the book."""
    if not request.user.has_perm(ADD_BOOK):
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
        report_rejected(request, error)
    else:
        messages.success(request, _("The book “%(title)s” is restored.") % {"title": isolate(book.title)})


def describe_isbn_in_use(error: changes.IsbnInUse) -> str:
    holder = Book.objects.filter(isbn=error.isbn).values_list("pk", "title").first()
    return format_isbn_in_use(*holder) if holder else f"{_(error.default_detail)}."


def show_lost_form(request: HttpRequest, object_id: str) -> HttpResponse | None:
    """Responds to a form of a book that no longer exists. Returns None if it never existed, or nothing was typed."""
    book = find_known_book(object_id)
    names = [name for name in request.POST if name.removeprefix("initial-") in FIELDS]
    if book is None or book.is_there or not names:
        return None
    response = render_page(
        request,
        "lost_form",
        _("%(book)s was deleted") % {"book": isolate(book.name)},
        lines=list(iter_typed_values(request)),
        inputs=[(name, request.POST[name]) for name in names],
        # Only the form of an earlier state has the field. A new book is available.
        has_availability=has_availability(request),
        kept=find_kept_book(book.pk, book.version + 1),
        restore=RESTORE,
        may_add=request.user.has_perm(ADD_BOOK),
        may_restore=book.is_restorable and may_restore(request),
        history_address=history_address(book.pk) if request.user.has_perm(VIEW_HISTORY) else "",
    )
    response.status_code = 409
    return response


def has_availability(request: HttpRequest) -> bool:
    """Browsers do not send an empty checkbox."""
    return "available" in request.POST or "initial-available" in request.POST


def find_kept_book(pk: int, version: int) -> Link | None:
    """Returns the book that this one was merged into, if it still exists."""
    merge = Change.objects.filter(book_id=pk, version=version, kind=Change.Kind.MERGED).first()
    kept = Book.objects.filter(pk=(merge.after or {})[MERGED_INTO]).first() if merge else None
    return Link(kept.title, reverse("admin:books_book_change", args=[kept.pk])) if kept else None


def iter_typed_values(request: HttpRequest) -> Iterator[tuple[str, str]]:
    for name in FIELDS:
        if name != "available":
            yield label_field(name), format_value(request.POST.get(name, ""))
        elif has_availability(request):
            yield label_field(name), format_value(name in request.POST)


def may_restore(request: HttpRequest) -> bool:
    return request.user.has_perm(ADD_BOOK) and request.user.has_perm(VIEW_HISTORY)


def restore_lost_book(request: HttpRequest, object_id: str) -> None:
    if not may_restore(request):
        raise PermissionDenied
    book = find_known_book(object_id)
    if book and book.is_restorable:
        restore_and_report(request, book.pk)
