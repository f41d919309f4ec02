"""What the OpenAPI document says of version 2: each status that really occurs, with real books as examples."""

from typing import Any

from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    PolymorphicProxySerializer,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)
from rest_framework import serializers

from books.api.bulk import LARGEST_BODY, MOST
from books.api.idempotency import KEY
from books.api.v2.serializers import (
    BookChangeSerializer,
    BookCreateSerializer,
    BookReplaceSerializer,
    BookSerializer,
    CreateSerializer,
    DeleteSerializer,
    UpdateSerializer,
)
from books.serializers import Closed
from library_site.api.schema import BOOK_ID, ETAG, IF_MATCH, IF_NONE_MATCH, NEW_BOOK, request_header, response_header

BOOK = {
    "id": 1,
    "title": "Pride and Prejudice",
    "author": "Jane Austen",
    "year": 1813,
    "isbn": "0-14-143951-3",
    "isbn13": "9780141439518",
    "genre": "Romance",
    "available": True,
    "created_at": "2026-01-31T09:30:00.000000Z",
    "updated_at": "2026-01-31T09:30:00.000000Z",
    "version": 1,
}
REQUEST_ID = "4c0e6a1f9b8d4e35"


class DetailSerializer(serializers.Serializer[Any]):
    """One thing that is wrong with a request."""

    field = serializers.CharField()
    message = serializers.CharField()


class FailureSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    details = DetailSerializer(many=True, required=False)
    requestId = serializers.CharField(help_text="As in X-Request-ID and in the logs.")  # noqa: N815


class ErrorSerializer(serializers.Serializer[Any]):
    """Any error."""

    error = FailureSerializer()


class ResultSerializer(serializers.Serializer[Any]):
    """`id` is null where a dry run would create, `version` absent where the book is gone."""

    op = serializers.ChoiceField(["create", "update", "delete"])
    id = serializers.IntegerField(allow_null=True)
    version = serializers.IntegerField(required=False)


class ResultsSerializer(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    results = ResultSerializer(many=True)


def error(description: str, code: str, message: str, **details: str) -> OpenApiResponse:
    listed = [{"field": field, "message": words} for field, words in details.items()]
    content = {"code": code, "message": message, **({"details": listed} if listed else {}), "requestId": REQUEST_ID}
    return OpenApiResponse(ErrorSerializer, description, [OpenApiExample("Error", {"error": content})])


def invalid(field: str, words: str) -> OpenApiResponse:
    description = "The request is not valid; every problem is listed."
    return error(description, "VALIDATION_ERROR", "The request is not valid", **{field: words})


def unknown(parameter: str, words: str) -> OpenApiResponse:
    message = "The query has a parameter that is not known"
    return error("The query has an unknown parameter.", "UNKNOWN_PARAMETER", message, **{parameter: words})


def book(description: str) -> OpenApiResponse:
    return OpenApiResponse(BookSerializer, description, [OpenApiExample("Book", BOOK)])


NOT_MODIFIED = OpenApiResponse(description="It is in a state that `If-None-Match` names.")
NOT_FOUND = error("No book has this id.", "NOT_FOUND", "Book not found")
CONFLICT = error(
    "Another book has the isbn (`Link` leads to it), or another change met this one.",
    "CONFLICT",
    "Another book has this isbn",
    isbn="The book at http://127.0.0.1:8000/api/v2/books/1 has it",
)
PRECONDITION = error(
    "It is in another state.", "PRECONDITION_FAILED", "The book is not in the state the request asks for"
)
UNAUTHENTICATED = error(
    "There is no credential where one is needed, or a bad one.", "UNAUTHENTICATED", "The access token is not valid"
)
FORBIDDEN = error("The credential lacks the scope.", "FORBIDDEN", "The credential lacks the scope write")
UNAVAILABLE = error("The database is out of reach.", "UNAVAILABLE", "The library is out of reach, try again later")
AT_ANY_TIME = {401: UNAUTHENTICATED, 403: FORBIDDEN, 503: UNAVAILABLE}
MALFORMED = error(
    "The body is no JSON, or the query has an unknown parameter.",
    "MALFORMED_REQUEST",
    "The body is not valid JSON.",
    body="The body is not valid JSON.",
)
NOT_THE_BOOKS_ID = invalid("book_id", "Input should be a valid integer.")
FIELDS = OpenApiParameter(
    "fields",
    {"type": "array", "minItems": 1, "items": {"type": "string", "enum": list(BookSerializer.Meta.fields)}},
    explode=False,
    description="Members to show; without it, all.",
)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": f"^{KEY.pattern}$"},
    OpenApiParameter.HEADER,
    description="The same key within 24 hours gets the first answer again.",
)


@extend_schema_field(
    PolymorphicProxySerializer(
        "Operation", {"create": CreateSerializer, "update": UpdateSerializer, "delete": DeleteSerializer}, "op"
    )
)
class OperationField(serializers.JSONField):
    """Any one of them."""


class OperationsSerializer(Closed):
    """Changes to be made together."""

    operations = serializers.ListField(child=OperationField(), min_length=1, max_length=MOST)


BODY_REFUSED = {
    400: MALFORMED,
    413: error("The body is over 1 MiB.", "PAYLOAD_TOO_LARGE", "The body is over 1048576 bytes."),
    415: error("The body is not JSON.", "UNSUPPORTED_MEDIA_TYPE", 'Unsupported media type "text/plain" in request.'),
    422: invalid("year", "Input should be a valid integer."),
}
PICKED = {"type": "object", "minProperties": 1, "description": "The members that `fields` picks."}
# By reference: the component is there, by way of those who show a whole book.
SHOWN = {"anyOf": [{"$ref": "#/components/schemas/Book"}, PICKED]}
OPERATIONS = {
    "operations": [
        {"op": "create", "book": NEW_BOOK},
        {"op": "update", "id": 1, "version": 3, "book": {"available": False}},
        {"op": "delete", "id": 2},
    ]
}
RESULTS = {
    "dry_run": False,
    "results": [
        {"op": "create", "id": 401, "version": 1},
        {"op": "update", "id": 1, "version": 4},
        {"op": "delete", "id": 2},
    ],
}

# What PUT and PATCH answer alike.
CHANGED: dict[str, Any] = {
    "tags": ["Books"],
    "parameters": [
        BOOK_ID,
        IF_MATCH,
        IF_NONE_MATCH,
        response_header("ETag", ETAG, 200),
        response_header("Link", "The book that has the isbn.", 409),
    ],
    "responses": {
        200: book("The book after the change."),
        404: NOT_FOUND,
        409: CONFLICT,
        412: PRECONDITION,
        **BODY_REFUSED,
        **AT_ANY_TIME,
    },
}

version_2 = extend_schema_view(
    list=extend_schema(
        operation_id="list_books",
        summary="List books",
        description="In pages; follow `next` to read on. A book must match all filters that are given.",
        tags=["Books"],
        parameters=[
            FIELDS,
            request_header("If-None-Match", "Answer 304 if the page is the one that the client has."),
            request_header("If-Match", "Go on only if the page is the one that the client has."),
            response_header("ETag", "The state of the page.", 200, 304),
            response_header("Link", "The next and the previous page (RFC 8288).", 200),
        ],
        responses={
            200: OpenApiResponse(SHOWN, "The books.", [OpenApiExample("Books", BOOK)]),
            304: NOT_MODIFIED,
            412: PRECONDITION,
            422: invalid("limit", "Input should be less than or equal to 500."),
            400: unknown("autor", "It is not known here; the nearest name is author."),
            **AT_ANY_TIME,
        },
    ),
    create=extend_schema(
        operation_id="create_book",
        summary="Create a book",
        description="A new book is available.",
        tags=["Books"],
        request=BookCreateSerializer,
        examples=[OpenApiExample("A new book", NEW_BOOK, request_only=True)],
        parameters=[
            IDEMPOTENCY_KEY,
            response_header("Location", "The address of the new book.", 201),
            response_header("Link", "The book that has the isbn.", 409),
            response_header("ETag", ETAG, 201),
        ],
        responses={201: book("The new book."), 409: CONFLICT, **BODY_REFUSED, **AT_ANY_TIME},
    ),
    retrieve=extend_schema(
        operation_id="read_book",
        summary="Read a book",
        description="By its id.",
        tags=["Books"],
        parameters=[
            BOOK_ID,
            FIELDS,
            request_header("If-None-Match", "Answer 304 if the book is in one of these states."),
            IF_MATCH,
            response_header("ETag", ETAG, 200, 304),
        ],
        responses={
            200: OpenApiResponse(SHOWN, "The book.", [OpenApiExample("Book", BOOK)]),
            304: NOT_MODIFIED,
            404: NOT_FOUND,
            412: PRECONDITION,
            422: NOT_THE_BOOKS_ID,
            400: unknown("autor", "It is not known here; the nearest name is version."),
            **AT_ANY_TIME,
        },
    ),
    update=extend_schema(
        operation_id="replace_book",
        summary="Replace a book",
        description="All five members are needed; `available` stays as it is where it is absent.",
        request=BookReplaceSerializer,
        examples=[OpenApiExample("Another genre", {**NEW_BOOK, "genre": "Novel"}, request_only=True)],
        **CHANGED,
    ),
    partial_update=extend_schema(
        operation_id="change_book",
        summary="Change a book",
        description="Only the members present in the body change (JSON Merge Patch, RFC 7396).",
        request=BookChangeSerializer,
        examples=[OpenApiExample("Lent", {"available": False}, request_only=True)],
        **CHANGED,
    ),
    destroy=extend_schema(
        operation_id="delete_book",
        summary="Delete a book",
        description="Its id is never given out again.",
        tags=["Books"],
        parameters=[BOOK_ID, IF_MATCH, IF_NONE_MATCH],
        responses={
            204: OpenApiResponse(description="The book is gone."),
            404: NOT_FOUND,
            409: CONFLICT,
            412: PRECONDITION,
            422: NOT_THE_BOOKS_ID,
            400: unknown("autor", "It is not known here; the nearest name is version."),
            **AT_ANY_TIME,
        },
    ),
)

bulk_document = extend_schema(
    operation_id="change_books",
    summary="Change many books at once",
    description="In one transaction: nothing changes unless all operations succeed, and every failure is named.",
    tags=["Books"],
    request=OperationsSerializer,
    examples=[OpenApiExample("Three changes", OPERATIONS, request_only=True)],
    parameters=[
        IDEMPOTENCY_KEY,
        OpenApiParameter("dry_run", bool, default=False, description="Report, and change nothing."),
    ],
    responses={
        200: OpenApiResponse(ResultsSerializer, "What was done, in order.", [OpenApiExample("Results", RESULTS)]),
        409: error(
            "All failures are conflicts: an isbn in use, or another version.",
            "CONFLICT",
            "Nothing was changed: not every operation can be carried out",
            **{"0.isbn": "The book at http://127.0.0.1:8000/api/v2/books/1 has it"},
        ),
        **BODY_REFUSED,
        **AT_ANY_TIME,
        413: error("The body is over 16 MiB.", "PAYLOAD_TOO_LARGE", f"The body is over {LARGEST_BODY} bytes."),
        422: error(
            "An operation is not valid, or its book does not exist.",
            "VALIDATION_ERROR",
            "Nothing was changed: not every operation can be carried out",
            **{"1.id": "Book not found"},
        ),
    },
)
