"""The OpenAPI document of version 2 for operations on many books."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)

from books.api.v2.serializers import OperationPreviewSerializer, OperationSerializer
from books.models import Operation
from books.operations.lifecycle import OperationEnded, OperationUndone
from library_site.api.documents.errors import document_error, document_invalid
from library_site.api.documents.schema import (
    URL_FIELD,
    build_page_serializer,
    document_answer,
    request_example,
    response_header,
)

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
DONE_EXAMPLE: dict[str, Any] = {
    **WAITING_EXAMPLE,
    "state": "done",
    "matched": 4200,
    "changed": 4198,
    "unchanged": 2,
    "finished_at": "2026-01-31T09:30:02.000000Z",
}
CANCELLED_EXAMPLE = {**DONE_EXAMPLE, "state": "cancelled", "changed": 500, "unchanged": 0}
PAGE_EXAMPLE = {
    "results": [DONE_EXAMPLE],
    "next": f"{settings.PUBLIC_URL}/api/v2/operations?cursor=W2ZhbHNlLDdd",
    "previous": None,
}
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
RETRY_AFTER = response_header("Retry-After", "Seconds after which to ask, while the operation is under way.", 200, 202)


OperationPageSerializer = build_page_serializer(OperationSerializer, "A page of operations.", **URL_FIELD)


def document_operation(description: str, example: dict[str, object]) -> OpenApiResponse:
    return document_answer(OperationSerializer, description, example)


document_operations = extend_schema_view(
    list=extend_schema(
        summary="List your operations",
        description="Those that the person of the credential began, through whatever; the newest first.",
        parameters=[
            OpenApiParameter("state", enum=Operation.State.values, description="Only those in this state."),
        ],
        responses={
            200: document_answer(OperationPageSerializer, "The operations.", PAGE_EXAMPLE),
        },
    ),
    create=extend_schema(
        operation_id="begin_operation",
        summary="Change or delete many books",
        description="All books that match the filter, in batches, by a worker; the answer comes at once. The filter is"
        " applied again to each book that changed meanwhile. With `dry_run` nothing is changed, and the answer says"
        " what would be.",
        examples=[
            request_example("A genre gets another name", EDIT_EXAMPLE),
            request_example("A word is replaced", REPLACE_EXAMPLE),
            request_example("Drafts are deleted", DELETE_EXAMPLE),
        ],
        parameters=[
            OpenApiParameter("dry_run", bool, default=False, description="Report, and change nothing."),
            LOCATION,
            RETRY_AFTER,
        ],
        responses={
            200: document_answer(OperationPreviewSerializer, "What would change.", PREVIEW_EXAMPLE),
            202: document_operation("The operation waits for a worker.", WAITING_EXAMPLE),
            **document_invalid("filter.year_min", "Input should be a valid integer."),
        },
    ),
    retrieve=extend_schema(
        summary="Read how far an operation is",
        parameters=[RETRY_AFTER],
        responses={
            200: document_operation("The operation.", DONE_EXAMPLE),
        },
    ),
)

document_cancel = extend_schema(
    operation_id="cancel_operation",
    summary="Cancel an operation",
    description="What it changed stays, and can be undone. After the answer it changes nothing more.",
    parameters=[LOCATION],
    responses={
        202: document_operation("The operation is cancelled.", CANCELLED_EXAMPLE),
        **document_error(OperationEnded, "The operation is done, or has failed."),
    },
)

document_undo = extend_schema(
    operation_id="undo_operation",
    summary="Undo an operation",
    description="By another operation, which can be undone itself. A member that somebody changed since stays.",
    parameters=[LOCATION, RETRY_AFTER],
    responses={
        202: document_operation("The operation that undoes it.", UNDO_EXAMPLE),
        **document_error(OperationUndone, "The operation is under way, undone already, or changed nothing."),
    },
)
