"""Downloads the list of books as a file."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from books.admin.list_filters import build_query, select_listed
from books.exchange.downloads import stream_books
from books.exchange.formats.registry import STREAMED_FORMATS

FORMATS = {format.name: format for format in STREAMED_FORMATS.values()}


def export_list(request: HttpRequest) -> HttpResponseBase:
    """Answers with the books of the list with these parameters, on all its pages, in the order of their ids."""
    format = FORMATS.get(request.GET.get("format", ""))
    if not format:
        messages.error(request, _("Choose a format."))
        return HttpResponseRedirect(f"{reverse('admin:books_book_changelist')}?{build_query(request.GET)}")
    today = timezone.now().date().isoformat()
    return stream_books(select_listed({**request.GET.dict(), "today": today}), format)
