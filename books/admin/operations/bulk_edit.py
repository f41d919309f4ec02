"""The bulk edit: what is to be done with the books of a list, a preview of it, and its beginning."""

from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core import signing
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from books.admin.descriptions import compare_members
from books.admin.list.filters import LIST_FORM, ListFilterForm, change_query, list_unknown_names, resolve_filters
from books.admin.operations.descriptions import describe_edit, describe_filter, operation_address
from books.admin.operations.forms import BulkEditForm
from books.admin.views import render_page
from books.history.actors import find_actor
from books.models import Actor
from books.operations.lifecycle import store_operation
from books.operations.selection_tasks import MAX_ANNOUNCED_ALWAYS, DeleteTask
from books.operations.selections import StoredFilter, read_stored_filter

MAX_TOKEN_LENGTH = 40
SIGNING_SALT = "books.bulk_edit"


class InvalidFilter(Exception):
    """The list ignores a filter that is not valid; a bulk edit of more books than meant does not."""


def show_bulk_edit(request: HttpRequest) -> HttpResponse:
    """Asks what to do, then previews it, then begins it. The books are those of a list with the same query."""
    try:
        selection = read_selected_books(request.GET)
    except InvalidFilter:
        messages.error(request, _("Nothing was changed: a filter of the list is not valid."))
        return HttpResponseRedirect(list_address(request.GET))
    form = BulkEditForm(request.POST) if request.method == "POST" else BulkEditForm()
    if form.is_valid():
        return preview_or_begin(request, selection, form)
    return render_page(
        request,
        "operations/bulk_edit",
        _("Edit many books"),
        form=form,
        matched=selection.list_books().count(),
        filter=describe_filter(selection.values),
        list_address=list_address(request.GET),
    )


def preview_or_begin(request: HttpRequest, selection: StoredFilter, form: BulkEditForm) -> HttpResponse:
    """Begins what was confirmed, and else asks for it."""
    if not request.user.has_perms(form.kind.permissions):
        raise PermissionDenied
    token = read_token(request)
    previewed_selection = read_previewed(request.POST.get("selection", ""))
    if not token or previewed_selection is None:
        return render_preview(request, selection, form)
    selection = previewed_selection
    count = selection.list_books().count()
    if request.POST.get("matched") != str(count):
        return render_preview(request, selection, form, _("Meanwhile the number of the books is another one."))
    if count > MAX_ANNOUNCED_ALWAYS and read_number(request.POST.get("typed", "")) != str(count):
        return render_preview(request, selection, form, _("Type the number of the books to go on."))
    return begin_bulk_edit(request, selection, form, token)


def read_token(request: HttpRequest) -> str:
    """Raises BadRequest for a text that is no token, and that PostgreSQL cannot store."""
    token = request.POST.get("token", "")[:MAX_TOKEN_LENGTH]
    if "\0" in token:
        raise BadRequest(_("The token has a NUL character."))
    return token


def begin_bulk_edit(request: HttpRequest, selection: StoredFilter, form: BulkEditForm, token: str) -> HttpResponse:
    events = "silent" not in request.POST
    parameters = {"filter": selection.to_parameters(), **form.build_parameters(), "events": events}
    actor = find_actor(Actor.Channel.OPERATION, user_id=request.user.pk)
    kind, user_token = form.kind, f"{request.user.pk} {token}"
    operation = store_operation(kind.name, parameters, actor, timezone.now(), kind.permissions, user_token)
    return HttpResponseRedirect(operation_address(operation.pk))


def render_preview(request: HttpRequest, selection: StoredFilter, form: BulkEditForm, error: str = "") -> HttpResponse:
    """The form, which is valid, comes back with its confirmation, to the address of the bulk edit."""
    parameters, is_deletion = form.build_parameters(), form.kind is DeleteTask
    preview = form.kind.preview(selection.list_books(), parameters)
    title = _("Delete many books") if is_deletion else _("Edit many books")
    context: dict[str, Any] = {
        "form": form,
        "preview": preview,
        "error": error,
        "is_deletion": is_deletion,
        "lines": list(describe_edit(parameters)),
        "samples": [(sample, compare_members(sample.before, sample.after)) for sample in preview.samples],
        "unchanged": preview.matched - preview.would_change - preview.conflicts - preview.invalid,
        "is_large": preview.matched > MAX_ANNOUNCED_ALWAYS,
        "filter": describe_filter(selection.values),
        "token": str(uuid4()),
        "selection": sign_selection(selection),
        "address": bulk_edit_address(request.GET),
        "list_address": list_address(request.GET),
    }
    return render_page(request, "operations/preview", title, **context)


def read_selected_books(query: QueryDict) -> StoredFilter:
    """Returns the books of the list with this query, as it is now. Raises InvalidFilter."""
    if not ListFilterForm(query).is_valid() or list_unknown_names(query):
        raise InvalidFilter
    return StoredFilter(LIST_FORM, resolve_filters(query, timezone.now()))


def sign_selection(selection: StoredFilter) -> str:
    """The confirmation brings back what was previewed: by then it can be another day, and another zone."""
    return signing.dumps(selection.to_parameters(), salt=SIGNING_SALT, compress=True)


def read_previewed(text: str) -> StoredFilter | None:
    try:
        return read_stored_filter(signing.loads(text, salt=SIGNING_SALT))
    except signing.BadSignature:
        return None


def read_number(text: str) -> str:
    """Returns a number as it is written with or without separators of thousands."""
    return "".join(character for character in text if character not in " ,.’'\u00a0\u202f")


def bulk_edit_selected(request: HttpRequest) -> str:
    """Returns where the books that are ticked in the list are edited, or all of the list, if all are meant."""
    if is_across(request):
        return bulk_edit_address(request.GET)
    ids = ",".join(request.POST.getlist(ACTION_CHECKBOX_NAME))
    return f"{reverse('admin:bulk_edit')}?{urlencode({'ids': ids})}"


def is_across(request: HttpRequest) -> bool:
    """Whether all books of the list are meant, and not only those that are ticked."""
    return request.POST.get("select_across", "0") not in ("", "0")


def bulk_edit_address(query: QueryDict) -> str:
    return f"{reverse('admin:bulk_edit')}?{change_query(query)}"


def list_address(query: QueryDict) -> str:
    return f"{reverse('admin:books_book_changelist')}?{change_query(query)}"
