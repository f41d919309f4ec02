"""Starts the operations of an uploaded file. One transaction stores the changes of the file and the operation."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

import msgspec
from django.db import transaction
from django.utils.translation import gettext_noop

from books.files.corrections import (
    Cell,
    correct_cells,
    forget_accepted,
    list_accepted,
    move_accepted,
    move_corrections,
)
from books.files.import_tasks import (
    CHECK,
    IMPORT,
    PREVIEW,
    WRITTEN_VERDICTS,
    FileParameters,
    get_check_id,
    get_counts,
    read_parameters,
)
from books.files.matching import Verdict
from books.files.parsing import ImportRules
from books.files.uploads import iter_file_rows
from books.history.actors import ActorRef
from books.models import ImportFile, Operation
from books.operations.lifecycle import UNDER_WAY, OperationEnded, cancel_operation, store_operation
from library_site.http.api_errors import APIError
from library_site.jobs.expiry import delete_by_kind


class FileInUse(APIError):
    """A worker reads the file, or will read it soon."""

    status_code = 409
    default_detail = gettext_noop("The file is in use: cancel its check or import first.")


class NotChecked(APIError):
    """The check is running, or it failed."""

    status_code = 409
    default_detail = gettext_noop("The file is not checked yet.")


class NothingToImport(APIError):
    """The import would write no record."""

    status_code = 409
    default_detail = gettext_noop("Nothing in the file is to be imported.")


class CheckedAgain(APIError):
    """The page shows a check or import that is not the latest one."""

    status_code = 409
    default_detail = gettext_noop("Meanwhile the file was checked again. Look at what this check found.")


def lock_file(file_id: int) -> ImportFile:
    """Locks and returns the file. Callers that change its operations wait for each other; workers do not wait."""
    files = ImportFile.objects.select_for_update(no_key=True, of=("self",))
    return files.select_related("preview_operation", "check_operation", "import_operation").get(pk=file_id)


@transaction.atomic
def begin_preview(file_id: int, encoding: str, actor: ActorRef, now: datetime) -> None:
    """Starts a preview of the file with this encoding, a key of ENCODINGS or empty. Cancels a running preview.

    Another encoding could give records other positions, so an import keeps its own. Raises FileInUse.
    """
    file = lock_file(file_id)
    if file.import_operation:
        raise FileInUse
    cancel_under_way(file.preview_operation)
    parameters = FileParameters(file.pk, encoding)
    operation = store_operation(PREVIEW, msgspec.to_builtins(parameters), actor, now)
    ImportFile.objects.filter(pk=file.pk).update(encoding=encoding, preview_operation=operation)


@transaction.atomic
def begin_first_preview(file_id: int, actor: ActorRef, now: datetime) -> None:
    """Starts a preview of a completely uploaded file, unless there already was one."""
    file = lock_file(file_id)
    if not file.preview_operation:
        begin_preview(file.pk, file.encoding, actor, now)


@transaction.atomic
def begin_check(file_id: int, rules: ImportRules, actor: ActorRef, now: datetime) -> None:
    """Starts a check with these rules. Cancels a running check. Raises FileInUse."""
    file = lock_file(file_id)
    forget_accepted(file)
    store_check(file, rules, file.encoding, actor, now)


def store_check(file: ImportFile, rules: ImportRules, encoding: str, actor: ActorRef, now: datetime) -> None:
    """Stores a check of a locked file, and moves the corrections of the previous check to it. Raises FileInUse."""
    if file.import_operation and file.import_operation.state in UNDER_WAY:
        raise FileInUse
    cancel_under_way(file.check_operation)
    # Each import asks again whether to take what has warnings.
    rules = msgspec.structs.replace(rules, take_doubtful=False)
    parameters = FileParameters(file.pk, encoding, rules)
    operation = store_operation(CHECK, msgspec.to_builtins(parameters), actor, now)
    move_corrections(file, file.check_operation_id, operation.pk)
    ImportFile.objects.filter(pk=file.pk).update(rules=msgspec.to_builtins(rules), check_operation=operation)


@transaction.atomic
def save_corrections(file_id: int, shown_id: int | None, texts: Mapping[Cell, str]) -> None:
    """Stores corrections for the next check. `shown_id` is the check or import that the page shows.

    Raises CheckedAgain, FileInUse, TooLongCorrection.
    """
    file = lock_file(file_id)
    correct_cells(file, get_check_id(get_shown(file, shown_id)), texts)


@transaction.atomic
def begin_check_again(file_id: int, shown_id: int | None, actor: ActorRef, now: datetime) -> None:
    """Starts a check with the corrections, by the rules of the check or import with this id.

    Raises CheckedAgain, FileInUse.
    """
    file = lock_file(file_id)
    shown = read_parameters(get_shown(file, shown_id))
    store_check(file, shown.rules, shown.encoding, actor, now)


def get_shown(file: ImportFile, shown_id: int | None) -> Operation:
    """Returns the check or import with this id. Raises CheckedAgain if it is not the latest, FileInUse."""
    operation = file.latest_operation
    if operation is None or operation.pk != shown_id:
        raise CheckedAgain
    if operation.kind == IMPORT and operation.state in UNDER_WAY:
        raise FileInUse
    return operation


@transaction.atomic
def begin_import(
    file_id: int, shown_id: int | None, actor: ActorRef, now: datetime, *, take_doubtful: bool, events: bool
) -> None:
    """Starts the import for the check with this id, once.

    Raises NotChecked, CheckedAgain, NothingToImport.
    """
    file = lock_file(file_id)
    if file.import_operation and read_parameters(file.import_operation).check == shown_id:
        return
    check = file.latest_operation
    if check is None or check.pk != shown_id:
        raise CheckedAgain
    if check.kind != CHECK or check.state != Operation.State.DONE:
        raise NotChecked
    if not count_writable(file, check, take_doubtful=take_doubtful):
        raise NothingToImport
    move_accepted(file, check.pk)
    parameters = read_parameters(check)
    rules = msgspec.structs.replace(parameters.rules, take_doubtful=take_doubtful)
    parameters = msgspec.structs.replace(parameters, rules=rules, events=events, check=check.pk)
    stored, token = msgspec.to_builtins(parameters), f"import after {check.pk}"
    operation = store_operation(IMPORT, stored, actor, now, token)
    ImportFile.objects.filter(pk=file.pk).update(import_operation=operation)


def count_writable(file: ImportFile, shown: Operation, *, take_doubtful: bool) -> int:
    """Returns how many records an import after this check would write; 0 after an import."""
    if shown.kind != CHECK:
        return 0
    counts = get_counts(shown)
    doubtful_count = counts[Verdict.DOUBTFUL] if take_doubtful else list_accepted(file).count()
    return sum(counts[verdict] for verdict in WRITTEN_VERDICTS) + doubtful_count


def cancel_under_way(operation: Operation | None) -> None:
    """Cancels an operation whose result is no longer needed."""
    if operation and operation.state in UNDER_WAY:
        with suppress(OperationEnded):
            cancel_operation(operation.pk)


def delete_unused_file(file_id: int) -> None:
    """Deletes a file with its chunks, in batches. Raises FileInUse."""
    with transaction.atomic():
        file = lock_file(file_id)
        operations = (file.preview_operation, file.check_operation, file.import_operation)
        if any(operation and operation.state in UNDER_WAY for operation in operations):
            raise FileInUse
    delete_by_kind(iter_file_rows(ImportFile.objects.filter(pk=file_id)))
