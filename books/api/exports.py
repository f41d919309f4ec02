"""Exports the list of books as a file: all books that match the filters, in a format from the Accept header."""

from collections.abc import Iterator
from operator import itemgetter

from django.db.models import QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from books.files.exports import stream_books
from books.files.formats.registry import STREAMED_FORMATS, Format
from books.models import Book
from library_site.api.conditions import is_not_modified

JSON_TYPES = ("application/json", "application/vnd.library")
WILDCARDS = ("*/*", "application/*", "text/*")


def choose_format(accept: str) -> Format | None:
    """Returns the format that the Accept header prefers to JSON, or None. A wildcard alone selects no format."""
    ranges = list(iter_media_ranges(accept))
    named_ranges = [(weight, name) for name, weight in ranges if name in STREAMED_FORMATS]
    if not named_ranges:
        return None
    best_weight, best = max(named_ranges, key=itemgetter(0))
    json_weight = max((weight for name, weight in ranges if name.startswith(JSON_TYPES)), default=0.0)
    wildcard_weight = max((weight for name, weight in ranges if name in WILDCARDS), default=0.0)
    return STREAMED_FORMATS[best] if best_weight > json_weight and best_weight >= wildcard_weight else None


def iter_media_ranges(accept: str) -> Iterator[tuple[str, float]]:
    """Yields the parts of an Accept header with their weights (RFC 9110, 12.5.1)."""
    for part in accept.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        weights = [parameter[2:] for parameter in parameters if parameter.startswith("q=")]
        yield name, parse_weight(weights[0]) if weights else 1.0


def parse_weight(text: str) -> float:
    """Returns 0 for an invalid weight."""
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0


def export_books(books: QuerySet[Book], request: Request, format: Format) -> HttpResponseBase:
    """Returns a file with these books, page by page. It has no ETag. Raises PreconditionFailed."""
    if is_not_modified(request, ""):
        return HttpResponse(status=304)
    response = stream_books(books, format)
    return HttpResponse(headers=response.headers) if request.method == "HEAD" else response
