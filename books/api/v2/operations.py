"""The view of operations on many books in version 2."""

from typing import Any, ClassVar, cast

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from books.api import operations
from books.api.filters import SEARCH_FORM
from books.api.operations import (
    build_texts,
    check_filter,
    describe_preview,
    find_state_problems,
    flatten_problems,
    list_retry_headers,
    represent_operation,
    represent_row,
)
from books.api.v2.documents.operations import (
    OPERATION_ID_PARAMETER,
    document_cancel,
    document_operations,
    document_undo,
)
from books.api.v2.serializers import OperationSerializer
from books.api.views import BookViewSet
from books.models import Operation
from books.operations.lifecycle import OperationNotFound, find_operation, list_own_operations, list_undos
from books.operations.selection_tasks import DELETE, DeleteTask, EditTask, OperationRequest
from books.operations.selections import StoredFilter
from library_site.api.idempotency import idempotent
from library_site.api.pagination import NewestFirstPagination
from library_site.api.query import check_parameters, get_parameter, read_boolean
from library_site.api.responses import json_response
from library_site.api.viewsets import APIViewSet
from oauth.credentials import Credential
from oauth.permissions import HasUser, HasViewScope


@document_operations
class OperationViewSet(APIViewSet):
    """Whatever LIBRARY_ACCESS says, operations are for credentials: somebody must answer for them."""

    permission_classes = [HasViewScope, HasUser]
    scope = "write"
    noun = "operation"
    not_found = OperationNotFound
    path_parameters = [OPERATION_ID_PARAMETER]
    queryset = Operation.objects.order_by("pk")
    serializer_class = OperationSerializer
    pagination_class = NewestFirstPagination
    # The viewset of books in this version. Previews show its fields.
    books: ClassVar[type[BookViewSet]] = BookViewSet

    @idempotent
    def create(self, request: Request) -> HttpResponse:
        dry_run = self.read_dry_run(request)
        change, events = self.read_change(request)
        check_filter(change.selection)
        if dry_run:
            return json_response(describe_preview(self.books.get_representation(), change.preview()))
        operation = operations.begin_operation(change, events, get_credential(request), timezone.now())
        return answer_accepted(request, operation)

    def list(self, request: Request) -> Response:
        """Those that the user of the credential began, through whatever."""
        paginator, state = cast("Any", self.paginator), get_parameter(request, "state")
        check_parameters(request, ["state", *paginator.parameters])
        paginator.check(request, find_state_problems(state))
        rows = self.paginate_queryset(list_own_operations(get_credential(request).user_id or 0, state)) or []
        undos = {undo.undo_of_id: undo.pk for undo in list_undos(rows)}
        return self.get_paginated_response([represent_row(row, undos.get(row.pk)) for row in rows])

    def retrieve(self, request: Request, operation_id: int) -> HttpResponse:
        check_parameters(request, [])
        operation = find_operation(operation_id)
        return json_response(represent_operation(operation), headers=list_retry_headers(operation))

    @document_cancel
    def cancel(self, request: Request, operation_id: int) -> HttpResponse:
        check_parameters(request, [])
        return answer_accepted(request, operations.cancel_own(operation_id, get_credential(request)))

    @document_undo
    def undo(self, request: Request, operation_id: int) -> HttpResponse:
        check_parameters(request, [])
        return answer_accepted(request, operations.undo_own(operation_id, get_credential(request), timezone.now()))

    def read_dry_run(self, request: Request) -> bool:
        """Raises UnknownParameter, ValidationError."""
        check_parameters(request, ["dry_run"])
        dry_run, problems = read_boolean(request, "dry_run")
        if problems:
            raise ValidationError(problems)
        return dry_run

    def read_change(self, request: Request) -> tuple[OperationRequest, bool]:
        """Returns the request, and whether it sends events. Raises ParseError, ValidationError."""
        try:
            values = self.read_values(request)
        except ValidationError as error:
            raise ValidationError(flatten_problems(cast("dict[str, Any]", error.detail))) from error
        selection = StoredFilter(SEARCH_FORM, build_texts(values["filter"]))
        kind = DeleteTask if values["kind"] == DELETE else EditTask
        # Operations store the values as they are in the request.
        parameters = {name: values[name] for name in ("set", "replace") if values.get(name)}
        return OperationRequest(kind, selection, parameters), values.get("events", True)


def get_credential(request: Request) -> Credential:
    return cast("Credential", request.auth)


def answer_accepted(request: Request, operation: Operation) -> HttpResponse:
    location = reverse(f"{request.version}:operation", args=[operation.pk])
    headers = {"Location": location, **list_retry_headers(operation)}
    return json_response(represent_operation(operation), 202, headers)
