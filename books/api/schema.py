"""Parts of the OpenAPI documents that all versions share."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter

from books.book.fields import EXAMPLE
from library_site.api.documents.errors import document_invalid
from library_site.api.documents.schema import request_example, response_header
from library_site.api.query import INVALID_INTEGER

BOOK_ID_PARAMETER = OpenApiParameter("book_id", int, OpenApiParameter.PATH, description="The book's id.")
INVALID_BOOK_ID = document_invalid("book_id", str(INVALID_INTEGER), "path", "int_parsing")
LINK_HEADER = response_header("Link", "The book that has the isbn.", 409)
CREATE_OPERATION: dict[str, Any] = {
    "description": "A new book is available.",
    "examples": [request_example("A new book", EXAMPLE)],
    "parameters": [LINK_HEADER],
}
READ_OPERATION: dict[str, Any] = {"description": "By its id."}
DELETE_OPERATION: dict[str, Any] = {"description": "Its id is never given out again."}
