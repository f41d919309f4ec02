"""Parameters and examples that the OpenAPI documents of all versions share."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter

from books.members import EXAMPLE
from library_site.api.schema import request_example, request_header, response_header

BOOK_ID_PARAMETER = OpenApiParameter("book_id", int, OpenApiParameter.PATH, description="The book's id.")
ETAG_DESCRIPTION = "The state of the book, for `If-Match` and `If-None-Match`."
IF_MATCH_HEADER = request_header("If-Match", "Go on only if the book is in one of these states.")
IF_NONE_MATCH_HEADER = request_header("If-None-Match", "Go on only if the book is in none of these states.")
LINK_HEADER = response_header("Link", "The book that has the isbn.", 409)
READ_HEADERS = [
    request_header("If-None-Match", "Answer 304 if the book is in one of these states."),
    IF_MATCH_HEADER,
    response_header("ETag", ETAG_DESCRIPTION, 200, 304),
]
CHANGE_PARAMETERS = [
    BOOK_ID_PARAMETER,
    IF_MATCH_HEADER,
    IF_NONE_MATCH_HEADER,
    response_header("ETag", ETAG_DESCRIPTION, 200),
    LINK_HEADER,
]
CREATE_OPERATION: dict[str, Any] = {
    "operation_id": "create_book",
    "summary": "Create a book",
    "description": "A new book is available.",
    "tags": ["Books"],
    "examples": [request_example("A new book", EXAMPLE)],
}
READ_OPERATION: dict[str, Any] = {
    "operation_id": "read_book",
    "summary": "Read a book",
    "description": "By its id.",
    "tags": ["Books"],
}
DELETE_OPERATION: dict[str, Any] = {
    "operation_id": "delete_book",
    "summary": "Delete a book",
    "description": "Its id is never given out again.",
    "tags": ["Books"],
    "parameters": [BOOK_ID_PARAMETER, IF_MATCH_HEADER, IF_NONE_MATCH_HEADER],
}
