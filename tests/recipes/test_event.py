"""A kind of event that was added is published by the command and by a worker, documented, and open to webhooks."""

import json
from pathlib import Path

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from tests.support.imports import store_file
from tests.support.operations import begin_import, create_head_librarian, run_operations
from webhooks.models import Event

CONTENT = "title,author,year,isbn,genre\nEmma,Jane Austen,1815,9780141439587,Novel\n"
# It is beside the event of the book.
pytestmark = pytest.mark.unannounced


def list_imports() -> list[dict[str, object]]:
    bodies = [json.loads(bytes(event.body)) for event in Event.objects.filter(kind="import.finished")]
    return [body["data"] for body in bodies]


def test_a_command_publishes_it(db: None, tmp_path: Path) -> None:
    file = tmp_path / "books.csv"
    file.write_text(CONTENT)
    call_command("import_books", file, dry_run=True)
    assert list_imports() == []
    call_command("import_books", file)
    assert list_imports() == [{"added": 1}]


def test_a_worker_publishes_it(db: None) -> None:
    actor = create_head_librarian()
    operation = begin_import(actor, store_file(CONTENT.encode(), User.objects.get().pk))
    run_operations(operation)
    assert (operation.state, list_imports()) == ("done", [{"added": 1}])


def test_it_is_documented(api: httpx.Client) -> None:
    document = api.get("/openapi/v2.json").json()
    assert document["webhooks"]["import.finished"]["post"]["requestBody"]
