"""Actions on many books. They ask for confirmation if they delete books or cover more than one page."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext, ngettext_lazy

from books.admin.operations.bulk_edit import DELETE_BUTTON, ask, is_across, read_selected_books, render_preview
from books.admin.views import find_librarian, may_undo, report_done
from books.models import Book
from books.operations.edits import Edit
from books.operations.selection_tasks import (
    DeleteTask,
    MarkTask,
    OperationRequest,
    SelectionTask,
    run_small_operation,
)
from books.permissions import BULK_EDIT

# One transaction can change so many books without blocking other writers for long.
MAX_BOOKS = 1_000


class ListAction(NamedTuple):
    """The text of the confirmation, and the task."""

    name: str
    # Lazily translated texts.
    question: Any
    result: Any
    task: type[SelectionTask]
    parameters: Mapping[str, Any]


def build_mark(name: str, question: Any, result: Any, *, available: bool) -> ListAction:
    return ListAction(name, question, result, MarkTask, Edit({"available": available}).to_parameters())


MARK_AVAILABLE = build_mark(
    "mark_available",
    ngettext_lazy("Mark %(count)s book as available", "Mark %(count)s books as available", "number"),
    ngettext_lazy("%(count)d book is now available.", "%(count)d books are now available.", "count"),
    available=True,
)
MARK_LENT = build_mark(
    "mark_lent",
    ngettext_lazy("Mark %(count)s book as lent", "Mark %(count)s books as lent", "number"),
    ngettext_lazy("%(count)d book is now lent.", "%(count)d books are now lent.", "count"),
    available=False,
)
DELETED = ngettext_lazy("%(count)d book is deleted.", "%(count)d books are deleted.", "count")
DELETE_ACTION = ListAction("delete_books", DELETE_BUTTON, DELETED, DeleteTask, {})


def run_list_action(request: HttpRequest, books: QuerySet[Book], action: ListAction) -> HttpResponse | None:
    """Changes the books, or asks for confirmation. After the confirmation, the filter of the list is applied again."""
    pks = list(books.order_by().values_list("pk", flat=True)[: MAX_BOOKS + 1])
    if len(pks) > MAX_BOOKS:
        return ask_as_operation(request, action)
    if not pks:
        messages.error(request, gettext("What was selected is no longer there."))
        return None
    must_ask = action.task is DeleteTask or is_across(request)
    if must_ask and request.POST.get("confirmed") != str(len(pks)):
        return ask_at_once(request, action, pks)
    now = timezone.now()
    operation = run_small_operation(action.task(), action.parameters, pks, find_librarian(request), now)
    address = reverse("admin:operation_undo", args=[operation.pk]) if may_undo(request) and operation.changed else ""
    done = action.result % {"count": operation.changed} if operation.changed else gettext("Nothing had to change.")
    if operation.refused:
        kept = ngettext(
            "%(count)s book stays: something else refers to it.",
            "%(count)s books stay: something else refers to them.",
            operation.refused,
        )
        messages.warning(request, kept % {"count": operation.refused})
    report_done(request, done, address)
    return None


def ask_as_operation(request: HttpRequest, action: ListAction) -> HttpResponse | None:
    """Shows the preview of a bulk edit instead, to users who may start one."""
    if not request.user.has_perm(BULK_EDIT) or not is_across(request):
        message = gettext(
            "Nothing was changed: these are more than %(count)s books. Narrow the list by its filters first."
        )
        messages.error(request, message % {"count": number_format(MAX_BOOKS, force_grouping=True)})
        return None
    selection = read_selected_books(request.GET)
    if selection:
        return ask(request, OperationRequest(action.task, selection, action.parameters))
    messages.error(request, gettext("Nothing was changed: the library cannot read a filter of the list."))
    return None


def ask_at_once(request: HttpRequest, action: ListAction, pks: Sequence[int]) -> HttpResponse:
    across = request.POST.get("select_across", "0")
    inputs = {"action": action.name, "select_across": across, "confirmed": len(pks)}
    # The user confirmed another number of books.
    error = gettext("Meanwhile the number of books has changed.") if "confirmed" in request.POST else ""
    return render_preview(
        request,
        action.question,
        action.parameters,
        action.task.preview(Book.objects.filter(pk__in=pks), action.parameters),
        error=error,
        is_at_once=True,
        inputs=[*inputs.items(), *((ACTION_CHECKBOX_NAME, pk) for pk in request.POST.getlist(ACTION_CHECKBOX_NAME))],
        list_address=request.get_full_path(),
    )
