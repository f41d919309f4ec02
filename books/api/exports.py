"""Exports the list of books as a file: all books that match the filters, in a format from the Accept header."""

from operator import itemgetter

from django.db.models import QuerySet
from django.http import HttpResponse
from django.http.request import MediaType
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from books.files.exports import stream_books
from books.files.formats.registry import STREAMED_FORMATS, Format
from books.models import Book
from library_site.api.conditions import get_conditions

JSON_TYPES = ("application/json", "application/vnd.library")
WILDCARDS = ("*/*", "application/*", "text/*")


def choose_format(accept: str) -> Format | None:
    """Returns the format that the Accept header prefers to JSON, or None. A wildcard alone selects no format."""
    types = map(MediaType, accept.split(","))
    ranges = [(media_type.quality, f"{media_type.main_type}/{media_type.sub_type}") for media_type in types]
    named_ranges = [(weight, name) for weight, name in ranges if name in STREAMED_FORMATS]
    if not named_ranges:
        return None
    best_weight, best = max(named_ranges, key=itemgetter(0))
    json_weight = max((weight for weight, name in ranges if name.startswith(JSON_TYPES)), default=0.0)
    wildcard_weight = max((weight for weight, name in ranges if name in WILDCARDS), default=0.0)
    return STREAMED_FORMATS[best] if best_weight > json_weight and best_weight >= wildcard_weight else None


def export_books(books: QuerySet[Book], request: Request, format: Format) -> HttpResponseBase:
    """Returns a file with these books, page by page. It has no ETag. Raises PreconditionFailed."""
    if get_conditions(request).is_not_modified(""):
        return HttpResponse(status=304)
    response = stream_books(books, format)
    return HttpResponse(headers=response.headers) if request.method == "HEAD" else response
