"""The OpenAPI document of version 1: every status that can occur, with examples."""

from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view

from books.api.refusals import BookPreconditionFailed
from books.api.schema import (
    BOOK_ID_PARAMETER,
    CHANGE_PARAMETERS,
    CREATE_OPERATION,
    DELETE_OPERATION,
    ETAG_DESCRIPTION,
    LINK_HEADER,
    READ_HEADERS,
    READ_OPERATION,
)
from books.api.v1.serializers import BookCreateSerializer, BookSerializer, BookUpdateSerializer
from books.members import EXAMPLE
from books.writing.changes import BookNotFound, IsbnInUse
from library_site.api.error_documents import INVALID_LIMIT, document_invalid, document_refusal
from library_site.api.query import INVALID_INTEGER
from library_site.api.schema import document_answer, document_message, request_example, response_header

BOOK_EXAMPLE = {"id": 1, **EXAMPLE, "available": True, "created_at": "2026-01-31T09:30:00.000000"}


def document_book(description: str) -> OpenApiResponse:
    return document_answer(BookSerializer, description, BOOK_EXAMPLE)


# A reference, because for a serializer drf-spectacular would add a component whose name says that it is paginated.
BOOK_REFERENCE = {"$ref": "#/components/schemas/Book"}
NOT_FOUND = document_refusal(BookNotFound)
CONFLICT = document_refusal(IsbnInUse, "Another book has the isbn, or another change met this one.")
PRECONDITION_FAILED = document_refusal(BookPreconditionFailed, "The book is in another state.")
INVALID_BOOK_ID = document_invalid("book_id", str(INVALID_INTEGER), "path", "int_parsing")

document_books = extend_schema_view(
    list=extend_schema(
        operation_id="list_books",
        summary="List books",
        description="Ordered by id.",
        tags=["Books"],
        responses={
            200: document_answer(BOOK_REFERENCE, "The books.", BOOK_EXAMPLE),
            **INVALID_LIMIT,
        },
    ),
    create=extend_schema(
        **CREATE_OPERATION,
        request=BookCreateSerializer,
        parameters=[
            response_header("Location", "The address of the new book.", 201),
            response_header("ETag", ETAG_DESCRIPTION, 201),
            LINK_HEADER,
        ],
        responses={201: document_book("The new book."), **CONFLICT},
    ),
    retrieve=extend_schema(
        **READ_OPERATION,
        parameters=[
            BOOK_ID_PARAMETER,
            *READ_HEADERS,
        ],
        responses={
            200: document_book("The book."),
            304: OpenApiResponse(description="The book is in a state that `If-None-Match` names."),
            **NOT_FOUND,
            **PRECONDITION_FAILED,
            **INVALID_BOOK_ID,
        },
    ),
    update=extend_schema(
        operation_id="update_book",
        summary="Change a book",
        description="Only the members present in the body change.",
        tags=["Books"],
        request=BookUpdateSerializer,
        examples=[request_example("Another genre", {"genre": "Novel"})],
        parameters=CHANGE_PARAMETERS,
        responses={
            200: document_book("The book after the change."),
            **NOT_FOUND,
            **CONFLICT,
            **PRECONDITION_FAILED,
        },
    ),
    destroy=extend_schema(
        **DELETE_OPERATION,
        responses={
            200: document_message("The book is gone.", "Book deleted successfully"),
            **NOT_FOUND,
            **CONFLICT,
            **PRECONDITION_FAILED,
            **INVALID_BOOK_ID,
        },
    ),
)
