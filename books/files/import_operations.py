"""Starts the operations of an uploaded file. One transaction stores the changes of the file and the operation."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

import msgspec
from django.db import transaction
from django.utils.translation import gettext_noop

from books.files.corrections import Cell, find_changes, pass_corrections_on, store_changes
from books.files.import_tasks import CHECK, IMPORT, PREVIEW, WRITTEN_KINDS, get_counts, get_encoding, get_rules
from books.files.matching import Verdict
from books.files.parsing import ImportRules
from books.files.uploads import iter_file_rows
from books.history.actors import ActorRef
from books.models import ImportFile, Operation
from books.operations.lifecycle import UNDER_WAY, OperationEnded, cancel_operation, store_operation
from library_site.http.api_errors import APIError
from library_site.jobs.expiry import delete_by_kind

# Checked again when an operation starts, and with each batch.
PREVIEW_PERMISSIONS = ["books.import_books"]
IMPORT_PERMISSIONS = [*PREVIEW_PERMISSIONS, "books.add_book", "books.change_book"]


class FileInUse(APIError):
    """A worker reads the file, or will read it soon."""

    status = 409
    message = gettext_noop("The file is in use: cancel its operation first.")


class NotChecked(APIError):
    """The check is running, or it failed."""

    status = 409
    message = gettext_noop("The file is not checked yet.")


class NothingToImport(APIError):
    """The import would write no record."""

    status = 409
    message = gettext_noop("Nothing in the file is to be imported.")


class CheckedAgain(APIError):
    """The confirmed check is not the latest one, or the file is already imported."""

    status = 409
    message = gettext_noop("Meanwhile the file was checked again. Look at what this check found.")


def lock_file(file_id: int) -> ImportFile:
    """Locks and returns the file. Callers that change its operations wait for each other; workers do not wait."""
    files = ImportFile.objects.select_for_update(no_key=True, of=("self",))
    return files.select_related("preview_operation", "check_operation", "import_operation").get(pk=file_id)


@transaction.atomic
def begin_preview(file_id: int, encoding: str, actor: ActorRef, now: datetime) -> None:
    """Starts a preview of the file with this encoding, a key of ENCODINGS or empty. Cancels a running preview."""
    file = lock_file(file_id)
    cancel_under_way(file.preview_operation)
    parameters = {"file": file.pk, "encoding": encoding}
    operation = store_operation(PREVIEW, parameters, actor, now, PREVIEW_PERMISSIONS)
    ImportFile.objects.filter(pk=file.pk).update(encoding=encoding, preview_operation=operation)


@transaction.atomic
def begin_first_preview(file_id: int, actor: ActorRef, now: datetime) -> None:
    """Starts a preview of a completely uploaded file, unless there already was one."""
    file = lock_file(file_id)
    if not file.preview_operation:
        begin_preview(file.pk, file.encoding, actor, now)


@transaction.atomic
def begin_check(file_id: int, rules: ImportRules, actor: ActorRef, now: datetime) -> None:
    """Starts a check with these rules, unless the file is imported. Cancels a running check."""
    file = lock_file(file_id)
    if not file.import_operation:
        store_check(file, rules, file.encoding, actor, now)


def store_check(file: ImportFile, rules: ImportRules, encoding: str, actor: ActorRef, now: datetime) -> None:
    """Stores a check of a locked file, and copies the corrections of the previous check."""
    cancel_under_way(file.check_operation)
    stored_rules = msgspec.to_builtins(rules)
    parameters = {"file": file.pk, "encoding": encoding, "rules": stored_rules}
    operation = store_operation(CHECK, parameters, actor, now, IMPORT_PERMISSIONS)
    pass_corrections_on(file, file.check_operation_id, operation.pk)
    ImportFile.objects.filter(pk=file.pk).update(rules=stored_rules, check_operation=operation)


@transaction.atomic
def begin_corrected_check(
    file_id: int, check_id: int | None, texts: Mapping[Cell, str], actor: ActorRef, now: datetime
) -> None:
    """Starts a check with these corrections, by the rules of the check with this id.

    Raises CheckedAgain, TooManyCorrections, TooLongCorrection.
    """
    file = lock_file(file_id)
    check = file.check_operation
    if check is None or check.pk != check_id or file.import_operation:
        raise CheckedAgain
    store_changes(file, check.pk, find_changes(file, check.pk, texts))
    store_check(file, get_rules(check), get_encoding(check), actor, now)


@transaction.atomic
def begin_import(
    file_id: int, check_id: int | None, actor: ActorRef, now: datetime, *, take_doubtful: bool, events: bool
) -> None:
    """Starts the import for the check with this id, once. Raises NotChecked, CheckedAgain, NothingToImport."""
    file = lock_file(file_id)
    check = file.check_operation
    if file.import_operation:
        return
    if check is None or check.pk != check_id:
        raise CheckedAgain
    if check.state != Operation.State.DONE:
        raise NotChecked
    if not count_writable(check, take_doubtful=take_doubtful):
        raise NothingToImport
    rules = msgspec.structs.replace(get_rules(check), take_doubtful=take_doubtful)
    parameters = {
        "file": file.pk,
        "encoding": get_encoding(check),
        "rules": msgspec.to_builtins(rules),
        "events": events,
        "check": check.pk,
    }
    operation = store_operation(IMPORT, parameters, actor, now, IMPORT_PERMISSIONS, f"import {file.pk}")
    ImportFile.objects.filter(pk=file.pk).update(import_operation=operation)


def count_writable(check: Operation, *, take_doubtful: bool) -> int:
    """Returns how many records an import would write, or would check again because they are doubtful."""
    counts = get_counts(check)
    return sum(counts.get(kind, 0) for kind in (*WRITTEN_KINDS, *([Verdict.DOUBTFUL] if take_doubtful else [])))


def cancel_under_way(operation: Operation | None) -> None:
    """Cancels an operation whose result is no longer needed."""
    if operation and operation.state in UNDER_WAY:
        with suppress(OperationEnded):
            cancel_operation(operation.pk)


def delete_unused_file(file_id: int) -> None:
    """Deletes a file with its parts, in batches. Raises FileInUse."""
    with transaction.atomic():
        file = lock_file(file_id)
        operations = (file.preview_operation, file.check_operation, file.import_operation)
        if any(operation and operation.state in UNDER_WAY for operation in operations):
            raise FileInUse
    delete_by_kind(iter_file_rows(ImportFile.objects.filter(pk=file_id)))
