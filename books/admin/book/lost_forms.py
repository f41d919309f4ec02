"""Handles a form of a book that was deleted while the user was editing. The input is not lost."""

from collections.abc import Iterator

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from books.admin.book.deleted_books import restore_and_report
from books.admin.book.history import find_known_book
from books.admin.descriptions import format_value, history_address, label_field
from books.admin.views import ADD_BOOK, VIEW_HISTORY, render_page
from books.book_fields import FIELDS

# The name of the button that restores the book before its form is saved.
RESTORE = "_restore"
FLAGS = ("available",)


def show_lost_form(request: HttpRequest, object_id: str) -> HttpResponse | None:
    """Responds to a POST for a book that no longer exists. Returns None if it never existed."""
    book = find_known_book(object_id)
    if book is None or book.is_there:
        return None
    names = [name for name in request.POST if name.removeprefix("initial-") in FIELDS]
    response = render_page(
        request,
        "lost_form",
        _("%(book)s was deleted") % {"book": book.name},
        lines=list(iter_typed_values(request)),
        inputs=[(name, request.POST[name]) for name in names],
        restore=RESTORE,
        may_add=request.user.has_perm(ADD_BOOK),
        may_restore=book.is_restorable and may_restore(request),
        history_address=history_address(book.pk) if request.user.has_perm(VIEW_HISTORY) else "",
    )
    response.status_code = 409
    return response


def iter_typed_values(request: HttpRequest) -> Iterator[tuple[str, str]]:
    for name in FIELDS:
        # Browsers do not send an empty checkbox.
        value = name in request.POST if name in FLAGS else request.POST.get(name, "")
        yield label_field(name), format_value(value)


def may_restore(request: HttpRequest) -> bool:
    return request.user.has_perm(ADD_BOOK) and request.user.has_perm(VIEW_HISTORY)


def restore_lost_book(request: HttpRequest, object_id: str) -> None:
    """Restores the book so that its form can be saved, and shows the result as a message."""
    if not may_restore(request):
        raise PermissionDenied
    book = find_known_book(object_id)
    if book and book.is_restorable:
        restore_and_report(request, book.pk)
