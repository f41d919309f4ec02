"""The bulk edit: the user chooses an edit for the books of a list, sees a preview, and starts the operation."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import uuid4

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy

from books.admin.descriptions import compare_fields, format_sentence, operation_address
from books.admin.list.filters import LIST_FORM, ListFilterForm, change_query, list_unknown_names, resolve_filters
from books.admin.list.settings import redirect_to_list
from books.admin.list.words import describe_selection
from books.admin.operations.descriptions import describe_edit
from books.admin.operations.forms import BulkEditForm
from books.admin.views import focus_first, render_page
from books.history.actors import get_or_create_actor
from books.models import Actor, Book
from books.operations.lifecycle import store_operation
from books.operations.previews import Preview
from books.operations.selection_tasks import DELETE, DeleteTask, EditTask, OperationRequest
from books.operations.selections import StoredFilter
from books.operations.tasks import MAX_ANNOUNCED_ALWAYS
from books.permissions import OPERATION_KINDS
from library_site.admin.paginator import count_rows

SIGNING_SALT = "books.bulk_edit"
EDIT_BUTTON = ngettext_lazy("Edit %(count)s book", "Edit %(count)s books", "number")
DELETE_BUTTON = ngettext_lazy("Delete %(count)s book", "Delete %(count)s books", "number")


class Question(NamedTuple):
    """The choices of a preview. The confirmation sends them back signed, because the day or the time zone can change.

    `token` identifies the operation: a confirmation that is sent twice starts it once.
    """

    change: OperationRequest
    matched: int
    token: str

    def sign(self) -> str:
        kind, selection, parameters = self.change
        content = (kind.name, selection._asdict(), parameters, self.matched, self.token)
        return signing.dumps(content, salt=SIGNING_SALT, compress=True)


def read_question(text: str) -> Question | None:
    try:
        name, selection, parameters, matched, token = signing.loads(text, salt=SIGNING_SALT)
    except signing.BadSignature:
        return None
    kind = DeleteTask if name == DELETE else EditTask
    return Question(OperationRequest(kind, StoredFilter(**selection), parameters), matched, token)


def show_bulk_edit(request: HttpRequest) -> HttpResponse:
    """Shows the form, then the preview, then starts the operation for the books of a list with the same query."""
    if question := read_question(request.POST.get("question", "")):
        return begin_or_ask_again(request, question)
    selection = read_selected_books(request.GET)
    if selection is None:
        messages.error(request, _("Nothing was changed: the library cannot read a filter of the list."))
        return redirect_to_list(request.GET)
    form = BulkEditForm(request.POST if request.method == "POST" else None, label_suffix="")
    if form.is_valid():
        change = OperationRequest(form.kind, selection, form.build_parameters())
        require_permissions(request, change)
        return ask(request, change)
    focus_first(form)
    return render_page(
        request,
        "operations/bulk_edit",
        _("Edit many books"),
        form=form,
        # The preview has the exact number.
        matched=count_rows(selection.list_books()),
        filter=describe_selection(selection),
        list_address=selected_list_address(request.GET),
    )


def require_permissions(request: HttpRequest, change: OperationRequest) -> None:
    if not request.user.has_perms(OPERATION_KINDS[change.kind.name]):
        raise PermissionDenied


def begin_or_ask_again(request: HttpRequest, question: Question) -> HttpResponse:
    change, count = question.change, question.change.selection.list_books().count()
    require_permissions(request, change)
    if question.matched != count:
        return ask(request, change, _("Meanwhile the number of books has changed."))
    if count > MAX_ANNOUNCED_ALWAYS and read_number(request.POST.get("typed", "")) != str(count):
        return ask(request, change, _("Type the number of the books to go on."))
    actor = get_or_create_actor(Actor.Channel.OPERATION, user_id=request.user.pk)
    parameters = change.build_parameters(events="silent" not in request.POST)
    # The same token from another user is not a repetition.
    token = f"{request.user.pk} {question.token}"
    operation = store_operation(change.kind.name, parameters, actor, timezone.now(), token)
    return HttpResponseRedirect(operation_address(operation.pk))


def ask(request: HttpRequest, change: OperationRequest, error: str = "") -> HttpResponse:
    preview = change.preview()
    return render_preview(
        request,
        DELETE_BUTTON if change.kind is DeleteTask else EDIT_BUTTON,
        change.parameters,
        preview,
        error=error,
        is_large=preview.matched > MAX_ANNOUNCED_ALWAYS,
        filter=describe_selection(change.selection),
        inputs=[("question", Question(change, preview.matched, str(uuid4())).sign())],
        address=bulk_edit_address(request.GET),
        list_address=selected_list_address(request.GET),
    )


def render_preview(
    request: HttpRequest, words: Any, parameters: Mapping[str, Any], preview: Preview, **context: Any
) -> HttpResponse:
    """Renders the preview. The form's `inputs` confirm. `words` are lazily translated, for the number of changes."""
    button = format_sentence(words, preview.would_change)
    return render_page(
        request,
        "operations/preview",
        f"{button}?",
        button=button,
        preview=preview,
        books=[Book(pk=sample.id, **sample.before) for sample in preview.samples if sample.after is None],
        lines=list(describe_edit(parameters)),
        samples=[(sample, compare_fields(sample.before, sample.after)) for sample in preview.samples],
        unchanged=preview.matched - preview.would_change - preview.conflicts - preview.invalid,
        **context,
    )


def read_selected_books(query: QueryDict) -> StoredFilter | None:
    """Returns the books that the list with this query contains now.

    The list ignores an invalid filter. A bulk edit must not, because it would change too many books: it gets None.
    """
    if not ListFilterForm(query).is_valid() or list_unknown_names(query):
        return None
    return StoredFilter(LIST_FORM, resolve_filters(query, timezone.now()))


def read_number(text: str) -> str:
    return "".join(character for character in text if character not in " ,.’'\u00a0\u202f")


def bulk_edit_selected(request: HttpRequest) -> str:
    if is_across(request):
        return bulk_edit_address(request.GET)
    return reverse("admin:bulk_edit", query={"ids": ",".join(request.POST.getlist(ACTION_CHECKBOX_NAME))})


def is_across(request: HttpRequest) -> bool:
    """Whether the user selected all books of the list, not only the checked ones."""
    return request.POST.get("select_across", "0") not in ("", "0")


def bulk_edit_address(query: QueryDict) -> str:
    return f"{reverse('admin:bulk_edit')}?{change_query(query)}"


def selected_list_address(query: QueryDict) -> str:
    return f"{reverse('admin:books_book_changelist')}?{change_query(query)}"
