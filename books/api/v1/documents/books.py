"""What the OpenAPI document of version 1 cannot derive from its views."""

from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view

from books.api.schema import CREATE_OPERATION, DELETE_OPERATION, INVALID_BOOK_ID, LINK_HEADER, READ_OPERATION
from books.book.fields import EXAMPLE
from books.writing.changes import IsbnInUse
from library_site.api.documents.errors import INVALID_LIMIT, document_error
from library_site.api.documents.schema import document_answer, document_message, request_example
from library_site.api.operation_schema import document_state

BOOK_EXAMPLE = {"id": 1, **EXAMPLE, "available": True, "created_at": "2026-01-31T09:30:00.000000"}
# A reference, because drf-spectacular would add a component named "Paginated…" for a serializer.
BOOK_REFERENCE = {"$ref": "#/components/schemas/Book"}
CONFLICT = document_error(IsbnInUse, "Another book has the isbn, or another change met this one.")
PRECONDITION_FAILED = document_state("book", "The book is in another state.")

document_books = extend_schema_view(
    list=extend_schema(
        description="Ordered by id.",
        responses={200: document_answer(BOOK_REFERENCE, "The books.", BOOK_EXAMPLE), **INVALID_LIMIT},
    ),
    create=extend_schema(**CREATE_OPERATION, responses=CONFLICT),
    retrieve=extend_schema(
        **READ_OPERATION,
        responses={
            304: OpenApiResponse(description="The book is in a state that `If-None-Match` names."),
            **PRECONDITION_FAILED,
            **INVALID_BOOK_ID,
        },
    ),
    update=extend_schema(
        operation_id="update_book",
        summary="Change a book",
        description="Only the members present in the body change.",
        examples=[request_example("Another genre", {"genre": "Novel"})],
        parameters=[LINK_HEADER],
        responses={**CONFLICT, **PRECONDITION_FAILED},
    ),
    destroy=extend_schema(
        **DELETE_OPERATION,
        responses={
            200: document_message("The book is gone.", "Book deleted successfully"),
            **CONFLICT,
            **PRECONDITION_FAILED,
            **INVALID_BOOK_ID,
        },
    ),
)
