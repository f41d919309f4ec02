"""Downloads the list of books as a file. A worker writes workbooks before they can be downloaded."""

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _

from books.admin.descriptions import operation_address
from books.admin.list.filters import (
    LIST_FORM,
    LIST_PARAMETERS,
    describe_unknown,
    list_unknown_names,
    resolve_filters,
    select_listed,
)
from books.admin.list.settings import redirect_to_list
from books.admin.views import find_librarian
from books.files.export_tasks import EXPORT, iter_workbook
from books.files.exports import build_file_name, stream_books, stream_file
from books.files.formats.registry import FORMATS, XLSX
from books.models import Actor, ExportChunk, Operation
from books.operations.lifecycle import store_operation
from books.operations.selection_tasks import StoredFilter


def export_list(request: HttpRequest) -> HttpResponseBase:
    format = FORMATS.get(request.GET.get("format", ""))
    unknown_names = list_unknown_names(request.GET, "format")
    if not format or (format is XLSX and request.method != "POST") or unknown_names:
        messages.error(request, describe_unknown(unknown_names) if unknown_names else _("Choose a format."))
        return redirect_to_list(request.GET)
    parameters = {name: request.GET[name] for name in LIST_PARAMETERS if name in request.GET}
    if any("\0" in text for text in parameters.values()):
        # PostgreSQL cannot store NUL in the operation.
        raise BadRequest(_("A filter has a character that cannot be stored."))
    selection = StoredFilter(LIST_FORM, resolve_filters(request.GET, timezone.now()))
    if format is XLSX:
        return begin_export(request, selection)
    name = build_file_name(selection.values, timezone.localdate())
    return stream_books(select_listed(selection.values), format, name)


def begin_export(request: HttpRequest, selection: StoredFilter) -> HttpResponseBase:
    actor = find_librarian(request, Actor.Channel.OPERATION)
    operation = store_operation(EXPORT, {"filter": selection._asdict()}, actor, timezone.now())
    return HttpResponseRedirect(operation_address(operation.pk))


def download_workbook(request: HttpRequest, operation_id: int) -> HttpResponseBase:
    operations = Operation.objects.filter(kind=EXPORT, state=Operation.State.DONE, actor__user_id=request.user.pk)
    operation = operations.filter(pk=operation_id).first()
    if not operation or not ExportChunk.objects.filter(operation=operation).exists():
        raise Http404
    filters = (operation.parameters or {})["filter"]["values"]
    return stream_file(iter_workbook(operation), XLSX, build_file_name(filters, operation.created_at.date()))
