"""Actions on many books. They ask first if the books are on more than one page, or if they are deleted."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from books.admin.operations.bulk_edit import InvalidFilter, is_across, read_selected_books, render_preview
from books.admin.operations.descriptions import operation_address
from books.admin.operations.forms import DELETE_CHOICE as DELETE_MANY
from books.admin.operations.forms import SET, BulkEditForm
from books.admin.views import BULK_EDIT, find_librarian, render_page
from books.models import Book
from books.operations.edits import Edit
from books.operations.selection_tasks import DeleteTask, EditTask, SelectionTask, run_small_operation

# As many as one transaction changes without keeping other writers waiting.
MAX_BOOKS = 1_000
MAX_SAMPLED_BOOKS = 10


class ListAction(NamedTuple):
    """What is asked, and what a task does. `kind` is what the operation is called.

    `form` says the same to the bulk edit, which does it with more than MAX_BOOKS. `unchanged` are books that it leaves
    as they are.
    """

    name: str
    kind: str
    # Lazy texts.
    question: Any
    result: Any
    task: type[SelectionTask]
    parameters: Mapping[str, Any]
    form: Mapping[str, str]
    unchanged: Q | None = None
    always_asks: bool = False


def build_mark(name: str, question: Any, result: Any, *, available: bool) -> ListAction:
    parameters = Edit({"available": available}).to_parameters()
    form = {"change": SET, "availability": "available" if available else "lent"}
    return ListAction(name, "mark", question, result, EditTask, parameters, form, unchanged=Q(available=available))


MARK_AVAILABLE = build_mark(
    "mark_available", _("Mark as available"), _("Books now available: %(count)d."), available=True
)
MARK_LENT = build_mark("mark_lent", _("Mark as lent"), _("Books now lent: %(count)d."), available=False)
DELETE_ACTION = ListAction(
    "delete_books",
    "delete",
    _("Delete"),
    _("Books deleted: %(count)d."),
    DeleteTask,
    {},
    {"change": DELETE_MANY},
    always_asks=True,
)


def run_list_action(request: HttpRequest, books: QuerySet[Book], action: ListAction) -> HttpResponse | None:
    """Changes the books, or answers the page that asks. The filter of the list is applied again after the answer."""
    pks = list(books.order_by().values_list("pk", flat=True)[: MAX_BOOKS + 1])
    if len(pks) > MAX_BOOKS:
        return preview_as_operation(request, action)
    selected_books = Book.objects.filter(pk__in=pks)
    if must_ask(request, action) and request.POST.get("confirmed") != str(len(pks)):
        return render_question(request, selected_books, action, len(pks))
    now = timezone.now()
    operation = run_small_operation(action.kind, action.task(), action.parameters, pks, find_librarian(request), now)
    address = operation_address(operation.pk)
    result = str(action.result) % {"count": operation.changed}
    messages.success(request, format_html('{} <a href="{}">{}</a>', result, address, gettext("Undo")))
    return None


def preview_as_operation(request: HttpRequest, action: ListAction) -> HttpResponse | None:
    """Previews the same as a bulk edit of the list, for those who may do that."""
    if not request.user.has_perm(BULK_EDIT) or not is_across(request):
        message = gettext(
            "Nothing was changed: these are more than %(count)s books. Narrow the list by its filters first."
        )
        messages.error(request, message % {"count": number_format(MAX_BOOKS, force_grouping=True)})
        return None
    form = BulkEditForm(action.form)
    if not form.is_valid():
        raise ValueError(form.errors)
    try:
        return render_preview(request, read_selected_books(request.GET), form)
    except InvalidFilter:
        messages.error(request, "Nothing was changed: a filter of the list is not valid.")
        return None


def must_ask(request: HttpRequest, action: ListAction) -> bool:
    return action.always_asks or is_across(request)


def render_question(request: HttpRequest, books: QuerySet[Book], action: ListAction, count: int) -> HttpResponse:
    context: dict[str, Any] = {
        "action": action,
        "count": count,
        "unchanged_count": books.filter(action.unchanged).count() if action.unchanged else 0,
        "samples": books.order_by("-pk")[:MAX_SAMPLED_BOOKS],
        "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "select_across": request.POST.get("select_across", "0"),
        # The answer to the question was about another number of books.
        "has_changed": "confirmed" in request.POST,
        "list_address": request.get_full_path(),
    }
    title = ngettext("%(question)s: %(count)d book?", "%(question)s: %(count)d books?", count)
    return render_page(request, "list_action", title % {"question": action.question, "count": count}, **context)
