"""Describes operations on many books in the OpenAPI document of version 2."""

from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)

from books.api.v2.documents.books import IDEMPOTENCY_KEY_HEADER
from books.api.v2.serializers import MassChangeSerializer, OperationStateSerializer, PreviewSerializer
from library_site.api.schema import (
    BODY_ERRORS,
    COMMON_ERRORS,
    error_schema,
    invalid_schema,
    response_header,
    unknown_parameter_schema,
)

TAGS = ["Operations"]
WAITING_EXAMPLE = {
    "id": 7,
    "kind": "edit",
    "state": "waiting",
    "matched": None,
    "changed": 0,
    "unchanged": 0,
    "refused": 0,
    "undo_of": None,
    "undone_by": None,
    "created_at": "2026-01-31T09:30:00.000000Z",
    "finished_at": None,
}
DONE_EXAMPLE = {
    **WAITING_EXAMPLE,
    "state": "done",
    "matched": 4200,
    "changed": 4198,
    "unchanged": 2,
    "finished_at": "2026-01-31T09:30:02.000000Z",
}
CANCELLED_EXAMPLE = {**DONE_EXAMPLE, "state": "cancelled", "changed": 500, "unchanged": 0}
UNDO_EXAMPLE = {**WAITING_EXAMPLE, "id": 8, "kind": "undo", "undo_of": 7}
PREVIEW_EXAMPLE = {
    "matched": 4200,
    "would_change": 4198,
    "samples": [{"id": 1, "before": {"genre": "Sci-Fi"}, "after": {"genre": "Science fiction"}}],
}
EDIT_EXAMPLE = {"kind": "edit", "filter": {"genre": "Sci-Fi"}, "set": {"genre": "Science fiction"}}
REPLACE_EXAMPLE = {
    "kind": "edit",
    "filter": {"title": "colour"},
    "replace": {"member": "title", "find": "colour", "with": "color"},
}
DELETE_EXAMPLE = {"kind": "delete", "filter": {"q": "draft", "year_min": 2020}}
OPERATION_ID_PARAMETER = OpenApiParameter("operation_id", {"type": "integer"}, OpenApiParameter.PATH)
LOCATION = response_header("Location", "The address of the operation.", 202)
UNKNOWN_PARAMETER = unknown_parameter_schema("dryrun", "It is not known here; the nearest name is version.")
NOT_FOUND = error_schema("There is no operation with this id.", "NOT_FOUND", "Operation not found")
KEY_IN_USE = error_schema(
    "Another request with this `Idempotency-Key` is not answered yet.",
    "CONFLICT",
    "A request with this Idempotency-Key is being answered",
)


def operation_schema(description: str, example: dict[str, object]) -> OpenApiResponse:
    return OpenApiResponse(OperationStateSerializer, description, [OpenApiExample("Operation", example)])


document_operations = extend_schema_view(
    create=extend_schema(
        operation_id="begin_operation",
        summary="Change or delete many books",
        description="All books that match the filter, in batches, by a worker; the answer comes at once. The filter is"
        " applied again to each book that changed meanwhile. With `dry_run` nothing is changed, and the answer says"
        " what would be.",
        tags=TAGS,
        request=MassChangeSerializer,
        examples=[
            OpenApiExample("A genre gets another name", EDIT_EXAMPLE, request_only=True),
            OpenApiExample("A word is replaced", REPLACE_EXAMPLE, request_only=True),
            OpenApiExample("Drafts are deleted", DELETE_EXAMPLE, request_only=True),
        ],
        parameters=[
            IDEMPOTENCY_KEY_HEADER,
            OpenApiParameter("dry_run", bool, default=False, description="Report, and change nothing."),
            LOCATION,
        ],
        responses={
            200: OpenApiResponse(PreviewSerializer, "What would change.", [OpenApiExample("Preview", PREVIEW_EXAMPLE)]),
            202: operation_schema("The operation waits for a worker.", WAITING_EXAMPLE),
            409: KEY_IN_USE,
            **BODY_ERRORS,
            **COMMON_ERRORS,
            422: invalid_schema("filter.year_min", "Input should be a valid integer."),
        },
    ),
    retrieve=extend_schema(
        operation_id="read_operation",
        summary="Read how far an operation is",
        tags=TAGS,
        parameters=[OPERATION_ID_PARAMETER],
        responses={
            200: operation_schema("The operation.", DONE_EXAMPLE),
            404: NOT_FOUND,
            400: UNKNOWN_PARAMETER,
            **COMMON_ERRORS,
        },
    ),
)

document_cancel = extend_schema(
    operation_id="cancel_operation",
    summary="Cancel an operation",
    description="What it changed stays, and can be undone. After the answer it changes nothing more.",
    tags=TAGS,
    request=None,
    parameters=[OPERATION_ID_PARAMETER, LOCATION],
    responses={
        202: operation_schema("The operation is cancelled.", CANCELLED_EXAMPLE),
        404: NOT_FOUND,
        409: error_schema("The operation is done, or has failed.", "CONFLICT", "The operation has ended"),
        400: UNKNOWN_PARAMETER,
        **COMMON_ERRORS,
    },
)

document_undo = extend_schema(
    operation_id="undo_operation",
    summary="Undo an operation",
    description="By another operation, which can be undone itself. A member that somebody changed since stays.",
    tags=TAGS,
    request=None,
    parameters=[OPERATION_ID_PARAMETER, LOCATION],
    responses={
        202: operation_schema("The operation that undoes it.", UNDO_EXAMPLE),
        404: NOT_FOUND,
        409: error_schema(
            "The operation is under way, undone already, or changed nothing.",
            "CONFLICT",
            "The operation is undone already",
        ),
        400: UNKNOWN_PARAMETER,
        **COMMON_ERRORS,
    },
)
