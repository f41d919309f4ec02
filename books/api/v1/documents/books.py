"""The OpenAPI document of version 1: every status that can occur, with examples."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import serializers

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
from library_site.api.schema import message_schema, response_header

BOOK_EXAMPLE = {"id": 1, **EXAMPLE, "available": True, "created_at": "2026-01-31T09:30:00.000000"}


class ErrorSerializer(serializers.Serializer[Any]):
    """Any error but a 422."""

    detail = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """One thing that is wrong with a request, and where."""

    loc = serializers.ListField(child=serializers.CharField(), min_length=1)
    msg = serializers.CharField()
    type = serializers.CharField()


class ProblemsSerializer(serializers.Serializer[Any]):
    """All that is wrong with a request."""

    detail = ProblemSerializer(many=True)


def error_schema(description: str, message: str) -> OpenApiResponse:
    return OpenApiResponse(ErrorSerializer, description, [OpenApiExample("Error", {"detail": message})])


def problems_schema(*location: str, msg: str, type: str) -> OpenApiResponse:
    example = {"detail": [{"loc": list(location), "msg": msg, "type": type}]}
    description = "The request is not valid; every problem is listed."
    return OpenApiResponse(ProblemsSerializer, description, [OpenApiExample("Problems", example)])


def book_schema(description: str) -> OpenApiResponse:
    return OpenApiResponse(BookSerializer, description, [OpenApiExample("Book", BOOK_EXAMPLE)])


# A reference, because for a serializer drf-spectacular would add a component whose name says that it is paginated.
BOOK_REFERENCE = {"$ref": "#/components/schemas/Book"}
NOT_FOUND = error_schema("No book has this id.", "Book not found")
CONFLICT = error_schema("Another book has the isbn, or another change met this one.", "Another book has this isbn")
PRECONDITION_FAILED = error_schema("The book is in another state.", "The book is not in the state the request asks for")
INVALID_BOOK_ID = problems_schema("path", "book_id", msg="Input should be a valid integer.", type="int_parsing")
UNAUTHENTICATED = error_schema(
    "There is no credential where one is needed, or a bad one.", "The access token is not valid"
)
FORBIDDEN = error_schema(
    "The credential lacks the scope, or a page of another origin writes.", "The credential lacks the scope write"
)
UNAVAILABLE = error_schema("The database is out of reach, or busy.", "The library is out of reach, try again later")
COMMON_ERRORS = {401: UNAUTHENTICATED, 403: FORBIDDEN, 503: UNAVAILABLE}
BODY_ERRORS = {
    413: error_schema("The body is over 1 MiB.", "The body is over 1048576 bytes."),
    415: error_schema("The body is not JSON.", 'Unsupported media type "text/plain" in request.'),
    422: problems_schema("body", "year", msg="Input should be a valid integer.", type="int_type"),
}

document_books = extend_schema_view(
    list=extend_schema(
        operation_id="list_books",
        summary="List books",
        description="Ordered by id.",
        tags=["Books"],
        responses={
            200: OpenApiResponse(BOOK_REFERENCE, "The books.", [OpenApiExample("Books", BOOK_EXAMPLE)]),
            422: problems_schema(
                "query", "limit", msg="Input should be less than or equal to 500.", type="less_than_equal"
            ),
            **COMMON_ERRORS,
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
        responses={201: book_schema("The new book."), 409: CONFLICT, **BODY_ERRORS, **COMMON_ERRORS},
    ),
    retrieve=extend_schema(
        **READ_OPERATION,
        parameters=[
            BOOK_ID_PARAMETER,
            *READ_HEADERS,
        ],
        responses={
            200: book_schema("The book."),
            304: OpenApiResponse(description="The book is in a state that `If-None-Match` names."),
            404: NOT_FOUND,
            412: PRECONDITION_FAILED,
            422: INVALID_BOOK_ID,
            **COMMON_ERRORS,
        },
    ),
    update=extend_schema(
        operation_id="update_book",
        summary="Change a book",
        description="Only the members present in the body change.",
        tags=["Books"],
        request=BookUpdateSerializer,
        examples=[OpenApiExample("Another genre", {"genre": "Novel"}, request_only=True)],
        parameters=CHANGE_PARAMETERS,
        responses={
            200: book_schema("The book after the change."),
            404: NOT_FOUND,
            409: CONFLICT,
            412: PRECONDITION_FAILED,
            **BODY_ERRORS,
            **COMMON_ERRORS,
        },
    ),
    destroy=extend_schema(
        **DELETE_OPERATION,
        responses={
            200: message_schema("The book is gone.", "Book deleted successfully"),
            404: NOT_FOUND,
            409: CONFLICT,
            412: PRECONDITION_FAILED,
            422: INVALID_BOOK_ID,
            **COMMON_ERRORS,
        },
    ),
)
