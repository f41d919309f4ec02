"""A librarian who imports files in the admin, and a worker that does it in this process."""

from typing import Any
from urllib.parse import parse_qs

import msgspec
from django.contrib.auth import SESSION_KEY
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from books.files import uploads
from books.files.columns.tables import guess_mapping
from books.files.import_operations import begin_check
from books.files.parsing import ImportRules
from books.files.reader.client import read_preview
from books.history.actors import get_or_create_actor
from books.models import Actor, ImportFile, Operation
from tests.support.books_admin import LIST
from tests.support.operations import run_operations

IMPORT = f"{LIST}import/"


def page(file: ImportFile, name: str) -> str:
    return f"{IMPORT}{file.pk}/{name}/"


def upload(browser: Client, content: bytes, name: str = "books.csv") -> ImportFile:
    """Uploads a small file as a browser without the script does, and looks into it."""
    response = browser.post(IMPORT, {"file": SimpleUploadedFile(name, content)})
    file = ImportFile.objects.latest("pk")
    assert response.status_code == 302
    assert response["Location"] == page(file, "mapping")
    run_operations()
    return file


def choose(browser: Client, file: ImportFile, **rules: str) -> Any:
    """Sends the form of columns with these rules, and does the check. Returns the page of the check."""
    response = post_rules(browser, file, **rules)
    if response.status_code != 302:
        return response
    run_operations()
    return browser.get(response["Location"])


def post_rules(browser: Client, file: ImportFile, **rules: str) -> Any:
    """Sends the form of columns as it is shown, with these rules."""
    form = browser.get(page(file, "mapping")).context["form"]
    shown = {name: str(form[name].value() or "") for name in form.fields}
    defaults = {"match_by": "isbn13", "on_match": "leave", "on_none": "add"}
    chosen = {name: value or defaults.get(name, "") for name, value in shown.items()}
    return browser.post(page(file, "mapping"), {**chosen, **rules})


def confirm(browser: Client, file: ImportFile, **responses: str) -> Operation:
    """Confirms what the page of the file shows, and does the import."""
    post_confirmation(browser, file, follow=False, **responses)
    run_operations()
    file.refresh_from_db()
    assert file.import_operation is not None
    return file.import_operation


def post_confirmation(browser: Client, file: ImportFile, *, follow: bool = True, **responses: str) -> Any:
    """Confirms what the page of the file shows. Returns the page that follows."""
    file.refresh_from_db()
    operation = file.latest_operation
    form = {"shown": str(operation and operation.pk), "action": "import", **responses}
    return browser.post(page(file, "check"), form, follow=follow)


def check(browser: Client, content: bytes, **rules: Any) -> tuple[ImportFile, Any]:
    """Stores and checks a file without the pages that come first. Returns it with the page of the check."""
    file = store_file(content, int(browser.session[SESSION_KEY]), **{"on_match": "leave", **rules})
    return file, check_again(browser, file)


def check_again(browser: Client, file: ImportFile, **rules: Any) -> Any:
    """Checks a file by its rules, of which these are changed. Returns the page of the check."""
    file.refresh_from_db()
    actor = get_or_create_actor(Actor.Channel.IMPORT, user_id=file.user_id)
    begin_check(file.pk, msgspec.convert({**(file.rules or {}), **rules}, ImportRules), actor, timezone.now())
    run_operations()
    return browser.get(page(file, "check"))


def count_kinds(response: Any) -> dict[str, int]:
    return {parse_qs(section.address[1:])["kind"][0]: section.total for section in response.context["report"].sections}


def store_file(content: bytes, user_id: int, **rules: Any) -> ImportFile:
    """Stores a file as an upload does, with rules as the form of columns has them."""
    file = uploads.begin_upload(user_id, "books", len(content), "", timezone.now())
    for number, start in enumerate(range(0, len(content), uploads.CHUNK_BYTES)):
        uploads.add_chunk(file, number, content[start : start + uploads.CHUNK_BYTES])
    head = read_preview(uploads.build_source(file, ""))
    file.rules = msgspec.to_builtins(ImportRules(guess_mapping(head.columns), format=head.format, **rules))
    file.save()
    return file
