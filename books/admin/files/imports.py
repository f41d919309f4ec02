"""The steps of an import: upload the file, choose its columns, check it, and import it with a worker."""

import re
from collections.abc import Mapping
from typing import Any, BinaryIO, cast

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from books.admin.descriptions import isolate
from books.admin.files.forms import DEFAULTS, WITHOUT_ISBN_RULES, ImportRulesForm
from books.admin.files.results import build_report, read_fields
from books.admin.operations.descriptions import (
    describe_outcome,
    describe_progress,
    format_state,
    is_under_way,
)
from books.admin.operations.views import may_undo_operation
from books.admin.views import find_librarian, render_page
from books.files.corrections import count_corrections, count_unchecked
from books.files.exports import stream_file
from books.files.formats.encodings import ENCODINGS
from books.files.formats.records import UnreadableFile, format_count
from books.files.formats.registry import FORMATS
from books.files.import_operations import (
    begin_check,
    begin_check_again,
    begin_first_preview,
    begin_import,
    begin_preview,
    count_writable,
    delete_unused_file,
    save_corrections,
)
from books.files.import_tasks import CHECK, find_preview, get_check_id, get_counts, get_left_out
from books.files.matching import REJECTED_VERDICTS, Verdict
from books.files.reader.client import FilePreview
from books.files.rejected_records import iter_rejected_file
from books.files.uploads import (
    CHUNK_BYTES,
    KEPT_DAYS,
    OtherContent,
    WrongChunk,
    add_chunk,
    begin_upload,
    count_chunks,
    get_mapping,
    is_complete,
    remember_mapping,
    store_whole_file,
)
from books.models import Actor, ImportFile, Operation
from books.operations.lifecycle import find_undos
from books.operations.tasks import MAX_ANNOUNCED_ALWAYS
from library_site.db.integers import parse_integer
from library_site.http.api_errors import APIError

UNSAFE_NAME_CHARACTERS = re.compile("[^A-Za-z0-9_-]")
MAX_FINGERPRINT_LENGTH = 300
COLUMNS_STEP, CHECK_STEP, IMPORT_STEP = 1, 2, 3
# Whether the buttons that import take all records with warnings.
IMPORT_ACTIONS = {"import": False, "import_all": True}


def show_import(request: HttpRequest) -> HttpResponse:
    """Shows the upload form. The page's script uploads in parts; a browser without the script posts the whole file."""
    if request.method == "POST":
        try:
            return receive_whole_file(request) if request.FILES else begin_chunked_upload(request)
        except UnreadableFile as error:
            return report_error(request, str(error), 422, "admin:import_books")
    files = ImportFile.objects.filter(user=request.user.pk).order_by("-pk")
    return render_page(
        request,
        "imports/upload",
        _("Import books"),
        files=files.select_related("check_operation", "import_operation"),
        chunk_bytes=CHUNK_BYTES,
        kept_days=KEPT_DAYS,
    )


def begin_chunked_upload(request: HttpRequest) -> HttpResponse:
    """Returns the number of the next part to the script. Raises UnreadableFile."""
    name, size = request.POST.get("name", ""), parse_integer(request.POST.get("size", ""))
    if not name or size is None:
        raise UnreadableFile(_("Choose a file."))
    fingerprint = request.POST.get("fingerprint", "")[:MAX_FINGERPRINT_LENGTH]
    file = begin_upload(int(request.user.pk or 0), name, size, fingerprint, timezone.now())
    look_into_complete(request, file)
    return JsonResponse(
        {
            "next": count_chunks(file),
            "chunk_address": reverse("admin:import_books_chunk", args=[file.pk]),
            "mapping_address": reverse("admin:import_books_mapping", args=[file.pk]),
        }
    )


def receive_whole_file(request: HttpRequest) -> HttpResponse:
    """Stores a small file that a browser without the script sends in one request. Raises UnreadableFile."""
    upload = request.FILES.get("file")
    if not isinstance(upload, UploadedFile):
        raise UnreadableFile(_("Choose a file."))
    stream = cast("BinaryIO", upload)
    file = store_whole_file(int(request.user.pk or 0), upload.name or "file", stream, upload.size or 0, timezone.now())
    look_into_complete(request, file)
    return redirect("admin:import_books_mapping", file.pk)


def look_into_complete(request: HttpRequest, file: ImportFile) -> None:
    if is_complete(file):
        begin_first_preview(file.pk, find_librarian(request, Actor.Channel.IMPORT), timezone.now())


@require_POST
def receive_chunk(request: HttpRequest, file_id: int) -> HttpResponse:
    """Stores a part of a file and returns the number of the next one. The same part may be sent twice."""
    file, number = find_own(request, file_id), parse_integer(request.POST.get("number", ""))
    chunk = request.FILES.get("chunk")
    try:
        if number is None or not 0 <= number <= file.size // CHUNK_BYTES or not isinstance(chunk, UploadedFile):
            raise WrongChunk
        add_chunk(file, number, chunk.read())
    except WrongChunk:
        return JsonResponse({"next": count_chunks(file)}, status=409)
    except OtherContent:
        message = _("The file has changed since its upload began. Choose it again.")
        return report_error(request, message, 422, "admin:import_books")
    look_into_complete(request, file)
    return JsonResponse({"next": count_chunks(file)})


def show_mapping(request: HttpRequest, file_id: int) -> HttpResponse:
    """Asks which column contains which field, and which rules apply. Then it starts the check."""
    file = find_own(request, file_id)
    if not is_complete(file):
        message = _("The upload was cut off. Choose the same file again to go on.")
        return report_error(request, message, 422, "admin:import_books")
    if request.method == "POST" and request.POST.get("encoding") in ("", *ENCODINGS):
        return receive_encoding(request, file)
    preview = find_preview(file.preview_operation)
    if preview is None:
        return show_preview(request, file)
    form = build_form(request, file, preview)
    if request.method == "POST" and form.is_valid():
        return receive_rules(request, file, preview, form)
    return render_step(
        request,
        "imports/mapping",
        file,
        COLUMNS_STEP,
        preview=preview,
        form=form,
        encodings={name: ENCODINGS[name].name for name in FORMATS[preview.format].encodings},
        # A file that is damaged rather than in another encoding, or MARC.
        chosen_encoding=file.encoding or ("windows-1252" if preview.warning else "utf-8"),
    )


def receive_encoding(request: HttpRequest, file: ImportFile) -> HttpResponse:
    try:
        begin_preview(file.pk, request.POST["encoding"], find_librarian(request, Actor.Channel.IMPORT), timezone.now())
    except APIError as error:
        messages.error(request, _(error.default_detail))
    return redirect("admin:import_books_mapping", file.pk)


def receive_rules(request: HttpRequest, file: ImportFile, preview: FilePreview, form: ImportRulesForm) -> HttpResponse:
    remember_mapping(preview.columns, form.mapping, request.user.pk)
    try:
        begin_check(file.pk, form.build_rules(), find_librarian(request, Actor.Channel.IMPORT), timezone.now())
    except APIError as error:
        return report_error(request, _(error.default_detail), error.status_code, "admin:import_books_check", file.pk)
    return redirect("admin:import_books_check", file.pk)


def render_step(request: HttpRequest, template: str, file: ImportFile, step: int, **context: Any) -> HttpResponse:
    check_address = reverse("admin:import_books_check", args=[file.pk]) if file.latest_operation else ""
    steps = [
        (_("Columns"), reverse("admin:import_books_mapping", args=[file.pk])),
        (_("Check"), check_address if step == COLUMNS_STEP else ""),
        (_("Import"), ""),
    ]
    return render_page(request, template, _("Import books"), file=file, step=step, steps=steps, **context)


def show_preview(request: HttpRequest, file: ImportFile) -> HttpResponse:
    operation = file.preview_operation
    return render_step(
        request,
        "imports/preview",
        file,
        COLUMNS_STEP,
        operation=operation,
        is_under_way=operation and is_under_way(operation),
        badge=operation and format_state(operation),
        progress=operation and describe_progress(operation, timezone.now()),
    )


def build_form(request: HttpRequest, file: ImportFile, preview: FilePreview) -> ImportRulesForm:
    data = request.POST if request.method == "POST" else None
    initial = describe_rules(file.rules) if file.rules else {}
    mapping = file.rules["mapping"] if file.rules else get_mapping(preview.columns, request.user.pk)
    return ImportRulesForm(preview.format, preview.columns, mapping, data=data, initial=initial, label_suffix="")


def describe_rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    without_isbn = [choice for choice, rule in WITHOUT_ISBN_RULES.items() if rules.get(rule)]
    return {
        **rules,
        **{f"default_{name}": rules["defaults"].get(name, "") for name in DEFAULTS},
        "without_isbn": "".join(without_isbn),
    }


def show_check(request: HttpRequest, file_id: int) -> HttpResponse:
    """Shows the result of the latest check or import, with what can be corrected."""
    file = find_own(request, file_id)
    operation = file.latest_operation
    if not operation:
        return redirect("admin:import_books_mapping", file.pk)
    if request.method == "POST":
        return receive_corrections(request, file)
    is_check, undo = operation.kind == CHECK, find_undos([operation]).get(operation.pk)
    return render_step(
        request,
        "imports/check",
        file,
        CHECK_STEP if is_check else IMPORT_STEP,
        operation=operation,
        is_check=is_check,
        is_under_way=is_under_way(operation),
        badge=format_state(operation, undo),
        progress=describe_progress(operation, timezone.now()),
        outcome=describe_outcome(operation),
        left_out=get_left_out(operation),
        may_undo=may_undo_operation(request, operation, undo),
        report=build_report(file, operation, request.GET),
        **describe_next_steps(file, operation, undo),
    )


def describe_next_steps(file: ImportFile, operation: Operation, undo: Operation | None) -> dict[str, Any]:
    counts = get_counts(operation)
    is_check, is_done = operation.kind == CHECK, operation.state == Operation.State.DONE
    rejected_count = sum(counts[kind] for kind in REJECTED_VERDICTS)
    return {
        "is_done": is_done,
        "is_undone": undo,
        "corrected_count": count_corrections(file, get_check_id(operation)),
        "rejected_count": rejected_count,
        "has_warnings": is_check and is_done and counts[Verdict.DOUBTFUL] > 0,
        "may_check": bool(rejected_count or not is_done or undo),
        "asks_for_events": is_check and sum(counts.values()) > MAX_ANNOUNCED_ALWAYS,
        **describe_corrections(file, operation),
    }


def describe_corrections(file: ImportFile, operation: Operation) -> dict[str, Any]:
    """Returns what changes on the page with each correction."""
    unchecked_count = count_unchecked(file)
    sentence = ngettext(
        "%(count)d correction is saved, and not checked yet.",
        "%(count)d corrections are saved, and not checked yet.",
        unchecked_count,
    )
    may_import = operation.state == Operation.State.DONE
    writable_count = count_writable(file, operation, take_doubtful=False) if may_import else 0
    return {
        "unchecked": sentence % {"count": unchecked_count} if unchecked_count else "",
        "writable_count": writable_count,
        "import_label": ngettext("Import %(count)s book", "Import %(count)s books", writable_count)
        % {"count": format_count(writable_count)},
    }


def receive_corrections(request: HttpRequest, file: ImportFile) -> HttpResponse:
    """Saves the corrections of the page. Then it checks the file again, or starts the import, if the user wants it."""
    shown_id, action = parse_integer(request.POST.get("shown", "")), request.POST.get("action", "save")
    try:
        save_corrections(file.pk, shown_id, read_fields(request.POST))
        if action == "check":
            begin_check_again(file.pk, shown_id, find_librarian(request, Actor.Channel.IMPORT), timezone.now())
        elif action in IMPORT_ACTIONS:
            begin_import(
                file.pk,
                shown_id,
                find_librarian(request, Actor.Channel.IMPORT),
                timezone.now(),
                take_doubtful=IMPORT_ACTIONS[action],
                events="no_events" not in request.POST,
            )
    except APIError as error:
        return report_error(request, _(error.default_detail), error.status_code, "admin:import_books_check", file.pk)
    if action != "save":
        return redirect("admin:import_books_check", file.pk)
    if accepts_json(request):
        return JsonResponse(describe_corrections(file, cast("Operation", file.latest_operation)))
    return redirect(request.get_full_path())


def report_error(request: HttpRequest, message: str, status: int, *page: Any) -> HttpResponse:
    """Sends the message to the script, or shows it on a page."""
    if accepts_json(request):
        return JsonResponse({"message": message}, status=status)
    messages.error(request, message)
    return redirect(*page)


def accepts_json(request: HttpRequest) -> bool:
    return "application/json" in request.headers.get("Accept", "")


def show_returned(request: HttpRequest, file_id: int) -> HttpResponseBase:
    """Downloads the records that the latest check or import rejected."""
    file = find_own(request, file_id)
    operation = file.latest_operation
    if not operation:
        raise Http404
    stem = UNSAFE_NAME_CHARACTERS.sub("", file.name.rpartition(".")[0]) or "books"
    pieces = iter_rejected_file(file, operation)
    try:
        format = FORMATS[next(pieces).decode()]
    except UnreadableFile as error:
        return report_error(request, f"{file.name}: {error}", 422, "admin:import_books")
    return stream_file(pieces, format, f"{stem}.failed")


@require_POST
def delete_file(request: HttpRequest, file_id: int) -> HttpResponse:
    file = find_own(request, file_id)
    try:
        delete_unused_file(file.pk)
        messages.success(request, _("“%(name)s” is deleted.") % {"name": isolate(file.name)})
    except APIError as error:
        messages.error(request, _(error.default_detail))
    return redirect("admin:import_books")


def find_own(request: HttpRequest, file_id: int) -> ImportFile:
    """Raises Http404 also for the file of another user, but not for superusers."""
    files = ImportFile.objects.select_related("preview_operation", "check_operation", "import_operation")
    file = files.filter(pk=file_id).first()
    if file is None or not (file.user_id == request.user.pk or request.user.is_superuser):
        raise Http404
    return file
