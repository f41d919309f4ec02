"""What the OpenAPI document of version 2 cannot derive from the views of books."""

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

from books.api.bulk import MAX_BODY_BYTES, BulkFailed
from books.api.bulk_body import MAX_ITEMS
from books.api.schema import CREATE_OPERATION, DELETE_OPERATION, INVALID_BOOK_ID, LINK_HEADER, READ_OPERATION
from books.api.v2.serializers import (
    BulkCreateSerializer,
    BulkDeleteSerializer,
    BulkUpdateSerializer,
)
from books.book.fields import EXAMPLE
from books.files.formats.registry import STREAMED_FORMATS
from books.serializers import BOOK_EXAMPLE, BOOK_SCHEMA, BookSerializer
from books.writing.changes import BookExists, BookNotFound, IsbnInUse
from library_site.api.conditions import PreconditionFailed
from library_site.api.documents.errors import INVALID_LIMIT, ErrorDocument, document_error, document_invalid
from library_site.api.documents.schema import (
    PAGE_LINK,
    document_answer,
    request_example,
    request_header,
    response_header,
)
from library_site.api.operation_schema import NOT_MODIFIED, document_state, iter_condition_headers
from library_site.api.serializers import RejectUnknownMixin
from library_site.http.api_errors import ErrorContent, FieldError
from library_site.http.transfer.streams import TooManyStreamsOfAddress


class BulkResultSerializer(serializers.Serializer[Any]):
    """`id` is null for a book that a dry run would create; `version` is absent for a deleted book."""

    op = serializers.ChoiceField(["create", "update", "delete"])
    id = serializers.IntegerField(allow_null=True)
    version = serializers.IntegerField(required=False)


class BulkResultsSerializer(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    results = BulkResultSerializer(many=True)


HOLDER_EXAMPLE = "The book at http://127.0.0.1:8000/api/v2/books/1 has it"
CONFLICT = document_error(
    IsbnInUse,
    "Another book has the isbn (`Link` leads to it), or another change met this one.",
    FieldError("body", "isbn", HOLDER_EXAMPLE, "unique"),
)
FIELDS_PARAMETER = OpenApiParameter(
    "fields",
    {"type": "array", "minItems": 1, "items": {"type": "string", "enum": list(BookSerializer.Meta.fields)}},
    description="The members to show, repeated or with commas between them; all if it is absent. A book of the answer"
    " has these alone, also where the schema requires others.",
)


@extend_schema_field(
    PolymorphicProxySerializer(
        "BulkItem",
        {"create": BulkCreateSerializer, "update": BulkUpdateSerializer, "delete": BulkDeleteSerializer},
        "op",
    )
)
class BulkItemField(serializers.JSONField):
    """Any one of them."""


class BulkRequestSerializer(RejectUnknownMixin):
    """Changes to be made together."""

    operations = serializers.ListField(child=BulkItemField(), min_length=1, max_length=MAX_ITEMS)


# A reference: other responses already add the component.
OPERATIONS_EXAMPLE = {
    "operations": [
        {"op": "create", "book": EXAMPLE},
        {"op": "update", "id": 1, "version": 3, "book": {"available": False}},
        {"op": "delete", "id": 2},
    ]
}
RESULTS_EXAMPLE = {
    "dry_run": False,
    "results": [
        {"op": "create", "id": 401, "version": 1},
        {"op": "update", "id": 1, "version": 4},
        {"op": "delete", "id": 2},
    ],
}

FILE_TYPES = ", ".join(f"`{media_type}`" for media_type in STREAMED_FORMATS)
LIST_DESCRIPTION = (
    "In pages; follow `next` to read on. A book must match all filters that are given. With an `Accept` that prefers"
    " another media type to JSON, the answer is a file of all books that match, in the order of their ids, and knows no"
    f" parameters but the filters. Files are {FILE_TYPES}; the schema is that of JSON alone, so that clients are typed."
)

document_books = extend_schema_view(
    list=extend_schema(
        description=LIST_DESCRIPTION,
        parameters=[
            FIELDS_PARAMETER,
            request_header("If-None-Match", "Answer 304 if the page is the one that the client has."),
            request_header("If-Match", "Go on only if the page is the one that the client has."),
            response_header("ETag", "The state of the page.", 200, 304),
            PAGE_LINK,
        ],
        responses={
            200: document_answer(BOOK_SCHEMA, "The books.", BOOK_EXAMPLE),
            304: NOT_MODIFIED,
            **document_error(PreconditionFailed, "The page is another than the request asks for."),
            **document_error(TooManyStreamsOfAddress, "Too many files are sent to the address of the client."),
            **INVALID_LIMIT,
        },
    ),
    create=extend_schema(**CREATE_OPERATION, responses=CONFLICT),
    retrieve=extend_schema(**READ_OPERATION, parameters=[FIELDS_PARAMETER], responses=INVALID_BOOK_ID),
    update=extend_schema(
        description="All five members are required; `available` does not change if it is absent.",
        examples=[request_example("Another genre", {**EXAMPLE, "genre": "Novel"})],
        parameters=[LINK_HEADER],
        responses=CONFLICT,
    ),
    partial_update=extend_schema(
        description="Only the members present in the body change (JSON Merge Patch, RFC 7396).",
        examples=[request_example("Lent", {"available": False})],
        parameters=[LINK_HEADER],
        responses=CONFLICT,
    ),
    destroy=extend_schema(**DELETE_OPERATION, responses={**CONFLICT, **INVALID_BOOK_ID}),
)

document_revert = extend_schema(
    operation_id="revert_book",
    summary="Bring an earlier state back",
    description="The book gets the members that it had at this version, as a change like others: with a version and an"
    " event of its own. What is equal already does not change.",
    examples=[request_example("The first state", {"version": 1})],
    parameters=[LINK_HEADER, *iter_condition_headers("update", "book")],
    responses={
        200: document_answer(BookSerializer, "The book after the change.", BOOK_EXAMPLE),
        **CONFLICT,
        **document_state("book"),
        **document_invalid("version", "No state of the book with this version is known."),
    },
)

document_restore = extend_schema(
    operation_id="restore_book",
    summary="Restore a deleted book",
    description="It comes back under its old id, with a higher version than before and an event `book.created`.",
    parameters=[
        *iter_condition_headers("destroy", "book"),
        response_header("Location", "The address of the book.", 201),
        *iter_condition_headers("create", "book"),
        LINK_HEADER,
    ],
    responses={
        201: document_answer(BookSerializer, "The book.", {**BOOK_EXAMPLE, "version": 3}),
        **document_error(BookExists, "The book is there, or another book has its isbn (`Link` leads to it)."),
        **document_error(PreconditionFailed, "The state is another than the request asks for."),
        **INVALID_BOOK_ID,
    },
)

document_bulk = extend_schema(
    operation_id="change_books",
    summary="Change many books at once",
    description="In one transaction: nothing changes unless all operations succeed, and every failure is named.",
    request=BulkRequestSerializer,
    examples=[request_example("Three changes", OPERATIONS_EXAMPLE)],
    parameters=[OpenApiParameter("dry_run", bool, default=False, description="Report, and change nothing.")],
    responses={
        200: OpenApiResponse(
            BulkResultsSerializer,
            "The result of each operation, in order.",
            [OpenApiExample("Results", RESULTS_EXAMPLE)],
        ),
        409: ErrorDocument(
            "All failures are conflicts: an isbn in use, or another version.",
            ErrorContent(409, BulkFailed.default_detail, [FieldError("body", "0.isbn", HOLDER_EXAMPLE, "unique")]),
        ),
        413: ErrorDocument(
            "The body is over 16 MiB.",
            ErrorContent(413, f"The body is over {MAX_BODY_BYTES} bytes."),
        ),
        422: ErrorDocument(
            "An operation is not valid, or its book does not exist.",
            ErrorContent(
                422, BulkFailed.default_detail, [FieldError("body", "1.id", BookNotFound.default_detail, "not_found")]
            ),
        ),
    },
)
