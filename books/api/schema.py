"""Parameters and examples that the OpenAPI documents of all versions share."""

from drf_spectacular.utils import OpenApiParameter

from library_site.api.schema import request_header

NEW_BOOK_EXAMPLE = {
    "title": "Pride and Prejudice",
    "author": "Jane Austen",
    "year": 1813,
    "isbn": "9780141439518",
    "genre": "Romance",
}
BOOK_ID_PARAMETER = OpenApiParameter("book_id", int, OpenApiParameter.PATH, description="The book's id.")
ETAG_DESCRIPTION = "The state of the book, for `If-Match` and `If-None-Match`."
IF_MATCH_HEADER = request_header("If-Match", "Go on only if the book is in one of these states.")
IF_NONE_MATCH_HEADER = request_header("If-None-Match", "Go on only if the book is in none of these states.")
