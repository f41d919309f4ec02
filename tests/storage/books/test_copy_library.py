"""`copy_library`: a library grows from SQLite to PostgreSQL, or goes back."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core import serializers
from django.db import connection

from books.history import actors
from books.models import Book
from books.writing.id_sequence import reserve_id
from tests.support.account_pages import PASSWORD
from tests.support.books import build_book
from tests.support.corpus import Request, send_request
from tests.support.endpoints import SECRET, claim_deliveries, create_endpoint
from tests.support.forked_commands import run_forked
from tests.support.oauth_flows import (
    build_bearer_header,
    build_refresh_request,
    create_confidential_app,
    create_key_header,
    find_granted_scope,
    obtain_tokens,
    post_form,
    submit_sign_in,
)
from tests.support.second_factors import set_up_phone
from tests.support.server import (
    copy_migrated_database,
    get_database_name,
    get_suite_url,
    is_sqlite,
    run_command,
    run_in_shell,
)
from tests.support.sql import fetch_all
from tests.support.waiting import PROCESS_TIMEOUT
from webhooks.models import Endpoint, Event

# A row in each table has no event.
pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.unannounced]
INSTALL = Path(__file__).parents[3] / "docs" / "operations" / "install.md"
LISTS = """
    books  books?limit=2  books?q=%C3%A4&count=true  books?sort=-year&limit=1  books?sort=title
    books?sort=author&fields=id
    books?author=AUSTEN&genre=nov  books?isbn=corpus-2  books?available=false  books?year_min=1800&year_max=1900
    books/{0}  books/{0}/history  changes  changes?kind=deleted  operations  webhooks  webhooks/{1}/deliveries
"""
# `migrate` registers the app of /docs anew, and the stream of events begins anew behind another PostgreSQL.
NOT_COPIED = {"oauth2_provider.Application", "webhooks.Restoration"}
VALUES = {
    "BinaryField": b"\0\xff",
    "BooleanField": True,
    "DateTimeField": datetime(2026, 11, 23, 12, 0, 0, 1, UTC),
    "FloatField": 0.1,
    "GenericIPAddressField": "::1",
    "JSONField": ["https://library.example"],
    "UUIDField": UUID(int=1),
}
SPOIL_SQL = {
    "sqlite": [
        "CREATE TRIGGER spoil AFTER INSERT ON auth_user BEGIN UPDATE auth_user SET email = 'x' WHERE id = NEW.id; END"
    ],
    "postgresql": [
        "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.email = ''x''; RETURN NEW; END'",
        "CREATE TRIGGER spoil BEFORE INSERT ON auth_user FOR EACH ROW EXECUTE FUNCTION spoil()",
    ],
}


@pytest.fixture
def target_url(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "target"
    folder.mkdir()
    with copy_migrated_database(folder) as url:
        yield url


@pytest.fixture
def source_url() -> str:
    return get_suite_url()


@contextmanager
def use_database(url: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        connection.close()
        patch.setitem(connection.settings_dict, "NAME", get_database_name(url))
        # The same ids are of other actors there.
        actors.remembered_actors.clear()
        try:
            yield
        finally:
            connection.close()
            actors.remembered_actors.clear()


def fill_library(api: httpx.Client, owner: User | None = None) -> None:
    """Makes a book with a history, a deleted one with the last id, and a row in each other table."""
    create_endpoint(owner)
    book = api.post("/api/v2/books", json=build_book(title="Ä\\n\t'")).json()
    api.patch(f"/api/v2/books/{book['id']}", json={"available": False})
    reserve_id(1_000, "default")
    api.delete(f"/api/v2/books/{api.post('/api/v2/books', json=build_book(isbn='gone')).json()['id']}")
    for model in apps.get_models(include_auto_created=True):
        if not model._base_manager.exists():
            fields = [field for field in model._meta.local_concrete_fields if field is not model._meta.auto_field]
            model._base_manager.bulk_create([model(**{field.attname: choose_value(field) for field in fields})])


def choose_value(field: Any) -> Any:
    if field.remote_field:
        return field.related_model._base_manager.values_list("pk", flat=True).first()
    kind = field.get_internal_type()
    return VALUES.get(kind, 1 if kind.endswith("IntegerField") else "1")


def read_rows() -> dict[str, str]:
    models = apps.get_models(include_auto_created=True)
    rows = {model._meta.label: serializers.serialize("jsonl", model._base_manager.order_by("pk")) for model in models}
    return {label: text for label, text in rows.items() if label not in NOT_COPIED}


def collect_answers(api: httpx.Client) -> list[dict[str, Any]]:
    """Sends the lists of version 2, and writes, whose books have the same ids in a copy."""
    paths = LISTS.format(Book.objects.order_by("pk")[0].pk, Endpoint.objects.get().pk).split()
    answers = [send_request(api, Request("GET", f"/api/v2/{path}")) for path in paths]
    answers.append(send_request(api, Request("POST", "/api/v2/books", json.dumps(build_book(isbn="added")))))
    address = answers[-1]["headers"]["location"]
    answers.append(send_request(api, Request("PATCH", address, '{"year": 1}')))
    return answers


def test_a_copy_has_all_rows_and_does_what_its_source_does(
    api: httpx.Client, tmp_path: Path, source_url: str, target_url: str
) -> None:
    reader, app = User.objects.create_superuser("reader", password=PASSWORD), create_confidential_app()
    tokens = obtain_tokens(api, reader, app)
    phone = set_up_phone(reader)
    fill_library(api, reader)
    api.cookies.clear()
    api.headers.update({**create_key_header(reader, "read write webhooks"), "X-Request-ID": "of-the-copy"})
    Event.objects.update(transaction=0)
    page, rows = api.get("/api/v2/events?limit=2").json(), read_rows()
    assert all(rows.values())
    if is_sqlite():
        run_command(os.environ | {"DATABASE_URL": target_url}, "copy_library", source_url)
    else:
        run_command(os.environ | {"DATABASE_URL": f"sqlite:///{tmp_path}/library.sqlite3"}, "copy_library", source_url)
        follow_document(tmp_path, target_url)
    answers = collect_answers(api)
    assert {answer["status"] for answer in answers[: len(LISTS.split())]} == {200}
    with use_database(target_url):
        assert read_rows() == rows
        [delivery, *_] = claim_deliveries()
        assert delivery.secrets == (SECRET,)
        assert collect_answers(api) == answers
        rest = api.get("/api/v2/events", params={"after": page["cursor"]})
        assert rest.status_code == (200 if is_sqlite() else 410)
        api.headers.pop("X-API-Key")
        refreshed = api.post("/oauth/token", data=build_refresh_request(app, tokens["refresh_token"])).json()
        for token in (tokens["access_token"], refreshed["access_token"]):
            assert api.get("/api/v2/changes", headers=build_bearer_header(token)).status_code == 200
            assert find_granted_scope(api, token) == "read write"
        submit_sign_in(api, "reader", PASSWORD)
        assert api.get("/accounts/apps").status_code == 302
        post_form(api, "/accounts/login/code", {"code": phone.show_code()})
        assert api.get("/accounts/apps").status_code == 200


def follow_document(folder: Path, target_url: str) -> None:
    """Runs the commands of the document, which take the library of SQLite in this folder to PostgreSQL."""
    section = INSTALL.read_text().partition("### When SQLite is no longer enough")[2]
    commands = section.partition("```bash\n")[2].partition("```")[0]
    # Systemd is replaced, and `library` tells what its script would run.
    library = f'library() {{ . {folder}/environment; echo "$DATABASE_URL $*"; }}'
    places = {
        "/etc/library": str(folder),
        "/var/lib/library": str(folder),
        "postgresql://library:PASSWORD@/library": target_url,
    }
    for old, new in places.items():
        commands = commands.replace(old, new)
    (folder / "environment").write_text(f"DATABASE_URL=sqlite:///{folder}/library.sqlite3\n")
    script = f"set -e; systemctl() {{ :; }}; {library}; {commands}"
    calls = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, text=True, check=True, timeout=PROCESS_TIMEOUT)
    printed = ""
    for url, *command in map(str.split, calls.stdout.splitlines()):
        printed += run_command(os.environ | {"DATABASE_URL": url}, *command)
    assert "Copied and compared " in printed


def copy(source_url: str, target_url: str) -> str:
    """Returns the error."""
    run = run_forked(os.environ | {"DATABASE_URL": target_url}, "copy_library", source_url)
    assert run.returncode == 1
    return run.stderr


# A copy runs more than 200 statements in its target.
INTERRUPTED = """
from itertools import count
from django.core.management import CommandError, call_command
from django.db import connection
def interrupt(execute, *arguments):
    if next(numbers) == place:
        raise KeyboardInterrupt
    return execute(*arguments)
for place in (1, 80, 160):
    numbers = count(1)
    try:
        with connection.execute_wrapper(interrupt):
            call_command("copy_library", "{}")
    except CommandError as error:
        print(error)
    connection.close()
"""


def test_a_copy_that_is_interrupted_leaves_nothing_and_begins_again(
    api: httpx.Client, source_url: str, target_url: str
) -> None:
    fill_library(api)
    with use_database(target_url):
        new = read_rows()
    printed = run_in_shell(target_url, INTERRUPTED.replace("{}", source_url))
    assert printed == "Nothing was copied; the same command begins again. It was interrupted.\n" * 3
    with use_database(target_url):
        assert read_rows() == new
    run_command(os.environ | {"DATABASE_URL": target_url}, "copy_library", source_url)
    with use_database(target_url):
        assert read_rows() != new


def test_what_cannot_be_copied_is_refused_and_named(
    api: httpx.Client, tmp_path: Path, source_url: str, target_url: str
) -> None:
    assert "SOURCE_URL takes sqlite:///file or postgresql:" in copy("mysql://library@/library", target_url)
    assert f"There is no {tmp_path}/away.sqlite3." in copy(f"sqlite:///{tmp_path}/away.sqlite3", target_url)
    api.post("/api/v2/books", json=build_book())
    assert re.search(r"DATABASE_URL is not empty: \w+ has rows", copy(source_url, source_url))


def test_a_copy_that_differs_is_not_kept(api: httpx.Client, source_url: str, target_url: str) -> None:
    fill_library(api)
    for statement in SPOIL_SQL[connection.vendor]:
        fetch_all(target_url, statement)
    assert "Nothing was copied: auth_user differs from its source" in copy(source_url, target_url)
    assert fetch_all(target_url, "SELECT count(*) FROM auth_user") == [(0,)]


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("DELETE FROM django_migrations WHERE app = 'sessions'", "The source lacks sessions.0001_initial: bring it to"),
        (
            "INSERT INTO django_migrations (app, name, applied) VALUES ('books', '0999_later', '2026-01-01')",
            "The source has books.0999_later, which is not in",
        ),
    ],
)
def test_a_source_of_another_release_is_refused(tmp_path: Path, target_url: str, statement: str, sentence: str) -> None:
    (tmp_path / "source").mkdir()
    with copy_migrated_database(tmp_path / "source") as url:
        fetch_all(url, statement)
        assert sentence in copy(url, target_url)
