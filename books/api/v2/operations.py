"""The view of operations on many books in version 2."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, cast

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from books.api.filters import SEARCH_FORM
from books.api.idempotency import idempotent
from books.api.v2.documents.operations import (
    OPERATION_ID_PARAMETER,
    document_cancel,
    document_operations,
    document_undo,
)
from books.api.v2.serializers import OperationSerializer
from books.api.views import read_dry_run
from books.history.actors import ActorRef, get_or_create_actor
from books.models import Actor, Book, Operation
from books.operations.lifecycle import (
    UNDER_WAY,
    OperationNotFound,
    cancel_operation,
    find_operation,
    list_own_operations,
    list_undos,
    store_operation,
    undo_operation,
)
from books.operations.previews import Preview
from books.operations.selection_tasks import DELETE, DeleteTask, EditTask, OperationRequest, StoredFilter
from books.permissions import OPERATION_ACTIONS, OPERATION_KINDS, OPERATION_VIEWERS, UNDO_OTHERS, VIEW_HISTORY
from books.read_model import show_stored
from books.serializers import BookSerializer
from library_site.api.pagination import NewestFirstPagination
from library_site.api.query import check_parameters, get_parameter
from library_site.api.responses import RETRY_SOON
from library_site.api.viewsets import APIViewSet
from oauth.credentials import Credential
from oauth.issuers import describe_credential
from oauth.permissions import HasCredential, HasUser, require_permission

SCOPE = "write"


@document_operations
class OperationViewSet(APIViewSet):
    """Whatever LIBRARY_ACCESS says, operations are for credentials: somebody must answer for them."""

    permission_classes = [HasCredential, HasUser]
    required_permissions = OPERATION_ACTIONS
    scope = SCOPE
    noun = "operation"
    not_found = OperationNotFound
    path_parameters = [OPERATION_ID_PARAMETER]
    queryset = Operation.objects.order_by("pk")
    serializer_class = OperationSerializer
    pagination_class = NewestFirstPagination
    # Previews show its fields.
    book_serializer: ClassVar[type[Serializer[Book]]] = BookSerializer

    @idempotent
    def create(self, request: Request) -> HttpResponse:
        dry_run = read_dry_run(request)
        change, events = self.read_change(request)
        require_permission(get_credential(request), SCOPE, frozenset(OPERATION_KINDS[change.kind.name]))
        if dry_run:
            return Response(describe_preview(self.book_serializer, change.preview()))
        operation = store_operation(
            change.kind.name,
            change.build_parameters(events=events),
            find_caller(request),
            timezone.now(),
            credential=describe_credential(get_credential(request), SCOPE),
        )
        return answer_accepted(request, operation)

    def list(self, request: Request) -> Response:
        """Those that the user of the credential began, through whatever."""
        paginator, state = cast("Any", self.paginator), get_parameter(request, "state")
        check_parameters(request, ["state", *self.list_page_parameters()])
        states = Operation.State.values
        errors = {"state": [ErrorDetail(f"It is one of {', '.join(states)}.", "enum")]}
        paginator.check(request, {} if state is None or state in states else errors)
        rows = self.paginate_queryset(list_own_operations(get_credential(request).user_id or 0, state)) or []
        return self.get_paginated_response(represent_operations(rows))

    def retrieve(self, request: Request, operation_id: int) -> HttpResponse:
        check_parameters(request, [])
        operation, credential = find_operation(operation_id), get_credential(request)
        if not is_own(credential, operation) and credential.permissions.isdisjoint(OPERATION_VIEWERS):
            require_permission(credential, SCOPE, frozenset([VIEW_HISTORY]))
        [content] = represent_operations([operation])
        return Response(content, headers=build_retry_headers(operation))

    @document_cancel
    def cancel(self, request: Request, operation_id: int) -> HttpResponse:
        self.check_operator(request, operation_id)
        return answer_accepted(request, cancel_operation(operation_id))

    @document_undo
    def undo(self, request: Request, operation_id: int) -> HttpResponse:
        self.check_operator(request, operation_id)
        credential = describe_credential(get_credential(request), SCOPE)
        undo = undo_operation(operation_id, find_caller(request), timezone.now(), credential)
        return answer_accepted(request, undo)

    def check_operator(self, request: Request, operation_id: int) -> None:
        """Raises UnknownParameter, OperationNotFound, PermissionDenied."""
        check_parameters(request, [])
        credential = get_credential(request)
        if not is_own(credential, find_operation(operation_id)):
            require_permission(credential, SCOPE, frozenset([UNDO_OTHERS]))

    def read_change(self, request: Request) -> tuple[OperationRequest, bool]:
        """Returns the request, and whether it sends events. Raises ParseError, ValidationError."""
        values = self.read_values(request)
        # The values of filters as they would be in a query.
        texts = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in values["filter"].items()
        }
        selection = StoredFilter(SEARCH_FORM, texts)
        try:
            selection.list_books()
        except ValidationError as error:
            raise ValidationError({"filter": error.detail}) from error
        kind = DeleteTask if values["kind"] == DELETE else EditTask
        # Operations store the values as they are in the request.
        parameters = {name: values[name] for name in ("set", "replace") if values.get(name)}
        return OperationRequest(kind, selection, parameters), values.get("events", True)


def get_credential(request: Request) -> Credential:
    return cast("Credential", request.auth)


def is_own(credential: Credential, operation: Operation) -> bool:
    return operation.actor.user_id == credential.user_id


def find_caller(request: Request) -> ActorRef:
    return get_or_create_actor(Actor.Channel.OPERATION, credential=get_credential(request))


def answer_accepted(request: Request, operation: Operation) -> HttpResponse:
    location = reverse(f"{request.version}:operation", args=[operation.pk])
    [content] = represent_operations([operation])
    return Response(content, 202, headers={"Location": location, **build_retry_headers(operation)})


def build_retry_headers(operation: Operation) -> dict[str, str]:
    """Returns Retry-After while the operation is running."""
    return RETRY_SOON if operation.state in UNDER_WAY else {}


def represent_operations(operations: Sequence[Operation]) -> Any:
    undos = {undo.undo_of_id: undo.pk for undo in list_undos(operations)}
    for operation in operations:
        vars(operation)["undone_by"] = undos.get(operation.pk)
    return OperationSerializer(cast("Any", operations), many=True).data


def describe_preview(serializer: type[Serializer[Book]], preview: Preview) -> dict[str, Any]:
    show = partial(show_stored, serializer)
    samples = [{"id": one.id, "before": show(one.before), "after": show(one.after)} for one in preview.samples]
    return {"matched": preview.matched, "would_change": preview.would_change, "samples": samples}
