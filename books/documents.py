"""What the OpenAPI document says of books: each status that really occurs, with real books as examples."""

from typing import Any

from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)
from rest_framework import serializers

from books.serializers import BookCreateSerializer, BookSerializer, BookUpdateSerializer

NEW_BOOK = {
    "title": "Pride and Prejudice",
    "author": "Jane Austen",
    "year": 1813,
    "isbn": "9780141439518",
    "genre": "Novel",
}
BOOK = {"id": 1, **NEW_BOOK, "available": True, "created_at": "2026-01-31T09:30:00.000000"}


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


class MessageSerializer(serializers.Serializer[Any]):
    message = serializers.CharField()


def error(description: str, words: str) -> OpenApiResponse:
    return OpenApiResponse(ErrorSerializer, description, [OpenApiExample(description, {"detail": words})])


def problems(*location: str, msg: str, type: str) -> OpenApiResponse:
    example = {"detail": [{"loc": list(location), "msg": msg, "type": type}]}
    description = "The request does not match its shape"
    return OpenApiResponse(ProblemsSerializer, description, [OpenApiExample(description, example)])


def header(name: str, description: str, *statuses: int) -> OpenApiParameter:
    return OpenApiParameter(
        name, str, OpenApiParameter.HEADER, response=list(statuses) or False, description=description
    )


NOT_FOUND = error("No book has this id", "Book not found")
CONFLICT = error("The isbn is in use, or two changes met", "Another book has this isbn")
PRECONDITION = error("If-Match names another state of the book", "The book is not in the state the request asks for")
TOO_LARGE = error("The body is over 1 MiB", "The body is over 1048576 bytes.")
NOT_JSON = error("The body is not JSON", 'Unsupported media type "text/plain" in request.')
BODY_PROBLEMS = problems("body", "year", msg="Input should be a valid integer.", type="int_type")
ETAG = header("ETag", "The state of the book.", 200)
IF_MATCH = header("If-Match", "Change the book only in one of these states.")
EXAMPLE = OpenApiExample("A book", BOOK, response_only=True)
BODY = OpenApiExample("A new book", NEW_BOOK, request_only=True)

version_1 = extend_schema_view(
    list=extend_schema(
        operation_id="list_books",
        summary="List books, by id",
        responses={
            200: BookSerializer(many=True),
            422: problems("query", "limit", msg="Input should be less than or equal to 500.", type="less_than_equal"),
        },
        examples=[EXAMPLE],
    ),
    create=extend_schema(
        operation_id="create_book",
        summary="Create a book",
        request=BookCreateSerializer,
        parameters=[
            header("Location", "The address of the new book.", 201),
            header("ETag", "The state of the book.", 201),
        ],
        responses={201: BookSerializer, 409: CONFLICT, 413: TOO_LARGE, 415: NOT_JSON, 422: BODY_PROBLEMS},
        examples=[BODY, EXAMPLE],
    ),
    retrieve=extend_schema(
        operation_id="read_book",
        summary="Read a book",
        parameters=[
            header("If-None-Match", "Answer 304 where the book is in one of these states."),
            header("If-Match", "Answer 412 where the book is in none of these states."),
            header("ETag", "The state of the book.", 200, 304),
        ],
        responses={
            200: BookSerializer,
            304: OpenApiResponse(description="The book is in a state that If-None-Match names"),
            404: NOT_FOUND,
            412: PRECONDITION,
            422: problems("path", "book_id", msg="Input should be a valid integer.", type="int_parsing"),
        },
        examples=[EXAMPLE],
    ),
    update=extend_schema(
        operation_id="update_book",
        summary="Change a book",
        description="Only the members present change.",
        request=BookUpdateSerializer,
        parameters=[IF_MATCH, ETAG],
        responses={
            200: BookSerializer,
            404: NOT_FOUND,
            409: CONFLICT,
            412: PRECONDITION,
            413: TOO_LARGE,
            415: NOT_JSON,
            422: BODY_PROBLEMS,
        },
        examples=[OpenApiExample("Another genre", {"genre": "Romance"}, request_only=True), EXAMPLE],
    ),
    destroy=extend_schema(
        operation_id="delete_book",
        summary="Delete a book",
        parameters=[IF_MATCH],
        responses={
            200: OpenApiResponse(
                MessageSerializer,
                "The book is gone",
                [OpenApiExample("Deleted", {"message": "Book deleted successfully"})],
            ),
            404: NOT_FOUND,
            409: CONFLICT,
            412: PRECONDITION,
            422: problems("path", "book_id", msg="Input should be a valid integer.", type="int_parsing"),
        },
    ),
)
