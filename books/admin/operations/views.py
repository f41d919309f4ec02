"""The pages of operations: the list, one operation with its progress, and the buttons to cancel and undo it."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from books.admin.descriptions import (
    changes_address,
    describe_names,
    is_unnumbered,
    link_operation,
    link_undo,
    list_operations,
    list_shown_operations,
)
from books.admin.list.filters import describe_selection
from books.admin.operations.descriptions import (
    count_problems,
    describe_edit,
    describe_progress,
    find_changed_books,
    format_state,
    is_under_way,
    list_first_titles,
    list_problems,
)
from books.admin.pager import PAGE_SIZE, Pager
from books.admin.views import find_librarian, may_undo, render_page
from books.files.export_tasks import EXPORT
from books.history.change_pages import NAME_COLUMNS, ActorNames
from books.models import Actor, Change, Operation
from books.operations import lifecycle
from books.operations.lifecycle import OperationNotFound
from books.operations.selection_tasks import get_selection
from books.operations.tasks import list_unlisted_kinds
from books.permissions import OPERATION_VIEWERS, UNDO_OTHERS, VIEW_HISTORY
from library_site.admin.site import has_any_permission
from library_site.http.api_errors import APIError

# The page of an operation names so many of the books that it changed.
MAX_BOOKS = 10
# What people read on its page. The interface says "operation".
ERRORS: Mapping[type[APIError], Any] = {
    lifecycle.OperationEnded: gettext_lazy("It has ended already."),
    lifecycle.OperationUnderWay: gettext_lazy("It is under way: cancel it first."),
    lifecycle.OperationUndone: gettext_lazy("It is undone already."),
    lifecycle.NothingToUndo: gettext_lazy("It changed nothing that the history knows."),
}


def show_operations(request: HttpRequest) -> HttpResponse:
    pager = Pager(request.GET, is_newest_first=True)
    operations = pager.read_rows(list_shown_operations(), PAGE_SIZE)
    titles = list_first_titles([operation.pk for operation in operations])
    undos = lifecycle.find_undos(operations)
    return render_page(
        request,
        "operations/list",
        _("Changes of many books"),
        page_help=_(
            "What is done with many books at once is done in the background, one book after the other. You can go on"
            " working, and close the page. It can be cancelled while it is under way, and undone afterwards."
        ),
        operations=[describe_row(operation, undos.get(operation.pk), titles[operation.pk]) for operation in operations],
        pager=pager,
    )


def describe_row(operation: Operation, undo: Operation | None = None, titles: str = "") -> dict[str, Any]:
    progress, lines = describe_progress(operation, timezone.now()), list(describe_edit(operation.parameters or {}))
    # The name of an operation that has ended well has the first number.
    numbers = progress["outcome"][0 if is_unnumbered(operation) else 1 :]
    return {
        "operation": operation,
        "link": link_operation(operation),
        "names": describe_names(
            ActorNames.build(*(getattr(operation.actor, name) for name in ("channel", *NAME_COLUMNS)))
        ),
        "badge": format_state(operation, undo),
        "progress": progress,
        "lines": lines,
        "numbers": numbers,
        "details": [text for text in (*lines, titles, ", ".join(numbers)) if text],
    }


def show_operation(request: HttpRequest, operation_id: int) -> HttpResponse:
    operation = find_visible(request, operation_id)
    parameters = operation.parameters or {}
    undo = lifecycle.list_undos([operation]).first()
    undo_of_undo = lifecycle.find_undos([undo] if undo else []).get(undo.pk if undo else 0)
    # It can expire, with its changes.
    undone = list_operations().filter(pk=operation.undo_of_id or 0).first()
    title = capfirst(link_operation(operation).text)
    pager = Pager(request.GET)
    problems = list_problems(operation, pager)
    return render_page(
        request,
        "operations/operation",
        title,
        **describe_row(operation, None if undo_of_undo else undo),
        books=find_changed_books([operation.pk], MAX_BOOKS)[operation.pk],
        has_filter="filter" in parameters,
        filter=describe_selection(get_selection(operation)) if "filter" in parameters else "",
        changes_books=operation.kind not in (EXPORT, *list_unlisted_kinds()),
        is_silent=not parameters.get("events", True),
        problems=problems,
        workbook_address=find_workbook(request, operation),
        reasons=count_problems(operation) if problems else [],
        pager=pager,
        is_under_way=is_under_way(operation),
        undo=undo and link_operation(undo),
        undo_of_undo=undo_of_undo and link_undo(undo_of_undo),
        undo_of=undone and link_operation(undone),
        may_end=may_end(request, operation),
        may_undo=may_undo_operation(request, operation, undo),
        may_view_history=request.user.has_perm(VIEW_HISTORY),
        changes_address=changes_address(operation=operation.pk),
    )


def find_workbook(request: HttpRequest, operation: Operation) -> str:
    """Returns the address of the workbook of an export, empty if this user may not download it."""
    is_there = is_own(request, operation) and operation.export_chunks.exists() and not is_under_way(operation)
    return reverse("admin:export_books_workbook", args=[operation.pk]) if is_there else ""


@never_cache
def show_progress(request: HttpRequest, operation_id: int) -> HttpResponse:
    return JsonResponse(describe_progress(find_visible(request, operation_id), timezone.now()))


@require_POST
def confirm_cancel(request: HttpRequest, operation_id: int) -> HttpResponse:
    require_end(request, operation_id)
    try:
        lifecycle.cancel_operation(operation_id)
        messages.success(request, _("It is cancelled. What is changed already stays, and can be undone."))
    except APIError as refusal:
        messages.error(request, ERRORS[type(refusal)])
    return redirect("admin:operation", operation_id)


@require_POST
def undo(request: HttpRequest, operation_id: int) -> HttpResponse:
    require_end(request, operation_id)
    if not may_undo(request):
        raise PermissionDenied
    actor = find_librarian(request, Actor.Channel.OPERATION)
    try:
        operation_id = lifecycle.undo_operation(operation_id, actor, timezone.now()).pk
    except APIError as refusal:
        messages.error(request, ERRORS[type(refusal)])
    return redirect("admin:operation", operation_id)


def find_visible(request: HttpRequest, operation_id: int) -> Operation:
    """Names are personal data: only users who may see the history, and the user who started the operation, see it."""
    try:
        operation = lifecycle.find_operation(operation_id)
    except OperationNotFound as error:
        raise Http404 from error
    if not is_own(request, operation) and not has_any_permission(request, OPERATION_VIEWERS):
        raise PermissionDenied
    return operation


def is_own(request: HttpRequest, operation: Operation) -> bool:
    return operation.actor.user_id == request.user.pk


def may_end(request: HttpRequest, operation: Operation) -> bool:
    return is_own(request, operation) or request.user.has_perm(UNDO_OTHERS)


def may_undo_operation(request: HttpRequest, operation: Operation, undo: Operation | None) -> bool:
    return (
        not (is_under_way(operation) or undo)
        and may_end(request, operation)
        and may_undo(request)
        and Change.objects.filter(operation=operation).exists()
    )


def require_end(request: HttpRequest, operation_id: int) -> None:
    if not may_end(request, find_visible(request, operation_id)):
        raise PermissionDenied
