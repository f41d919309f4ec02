"""Shows what other libraries' catalogues know about the ISBN of a new book. The librarian may copy it."""

import time
from contextlib import closing
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from books.admin.book.forms import write_isbn
from books.admin.descriptions import label_field
from books.book.isbn import normalize_isbn
from books.files.catalogues.lookup import CatalogueEntry, CatalogueResult, find_remembered, has_catalogues, look_up
from books.files.parsing import COMPLETED_FIELDS
from books.models import Book
from books.search.quality import warn_isbn
from library_site.http.api_errors import APIError
from library_site.http.callers import get_address_key
from library_site.http.transfer.streams import get_stream_limit
from library_site.rate_limit.counters import get_counter

# A lookup occupies a thread of the server for at most so many seconds.
LOOKUP_SECONDS = 4
# So many books tell how the library writes names.
NEWEST_BOOKS = 100
# Each user may send so many lookups to the catalogues in so many seconds.
MAX_QUESTIONS, QUESTION_PERIOD = 30, 60


class NoEntry(Exception):
    """There is nothing to show. `status` is the status of the response; `message` tells the user why."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        self.status, self.message = status, message
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}


def find_catalogue_address() -> str:
    """Returns the address that the form of a new book sends lookups to; empty if no catalogue is configured."""
    return reverse("admin:books_book_catalogue") if has_catalogues() else ""


@require_POST
def show_entry(request: HttpRequest) -> HttpResponse:
    """Returns the part of the page with the record that was found, or with the reason why there is none."""
    if not has_catalogues():
        raise Http404
    lookup, status, headers = CatalogueResult(), 200, {}
    try:
        lookup = find_lookup(request, write_isbn(request.POST.get("isbn", "")))
        if lookup.entry:
            message = _("Found at %(host)s:") % {"host": lookup.entry.host}
        elif lookup.problems:
            status = 502
            message = _("The catalogue did not say whether it has this ISBN. Fill in the form by hand.")
        else:
            status, message = 404, _("The catalogue does not have this ISBN. Fill in the form by hand.")
    except NoEntry as error:
        status, message, headers = error.status, error.message, error.headers
    entry = lookup.entry
    context = {
        "message": message,
        "problems": lookup.problems,
        "values": [(name, label_field(name), value) for name, value in format_values(entry).items()] if entry else [],
        "missing": [label_field(name) for name in COMPLETED_FIELDS if entry and name not in entry.values],
    }
    return TemplateResponse(
        request, "admin/books/book_admin/catalogue_entry.html", context, status=status, headers=headers
    )


def format_values(entry: CatalogueEntry) -> dict[str, Any]:
    """Catalogues write "Le Guin, Ursula K."; the name is turned round if the newest books have names in that order."""
    values = dict(entry.values)
    surname, comma, given_names = values.get("author", "").partition(", ")
    if comma and "," not in given_names and not has_surnames_first():
        values["author"] = f"{given_names} {surname}"
    return values


def has_surnames_first() -> bool:
    authors = list(Book.objects.order_by("-pk").values_list("author", flat=True)[:NEWEST_BOOKS])
    return 2 * sum("," in author for author in authors) >= len(authors)


def find_lookup(request: HttpRequest, isbn: str) -> CatalogueResult:
    """Raises NoEntry."""
    isbn13 = normalize_isbn(isbn)
    if not isbn13:
        raise NoEntry(422, warn_isbn(isbn))
    if remembered := find_remembered(isbn13):
        return remembered
    counter = get_counter(settings.REDIS_URL, QUESTION_PERIOD)
    if counter.count(f"catalogue:{request.user.pk}", time.monotonic()).requests > MAX_QUESTIONS:
        message = _("You have asked very often. Try again in a minute, or fill in the form by hand.")
        raise NoEntry(429, message, QUESTION_PERIOD)
    try:
        # A lookup occupies a thread while it waits, as an upload does, so both share the same limit of threads.
        place = get_stream_limit().open_stream(get_address_key(request))
    except APIError as refusal:
        message = _("The library waits for other servers already. Try again in a moment.")
        raise NoEntry(503, message, LOOKUP_SECONDS) from refusal
    with closing(place):
        return look_up(isbn13, LOOKUP_SECONDS)
