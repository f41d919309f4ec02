"""The app of docs/extending.md, as it stands there, beside the library."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.documents import list_code_blocks
from tests.support.server import copy_seeded_database, serve_library
from tests.support.waiting import PROCESS_TIMEOUT

DOCUMENT = Path(__file__).parents[3] / "docs/extending.md"
RESTRICTED = {"title": "Ash", "author": "Ann Lee", "year": 1990, "isbn": "9780306406157", "genre": "Restricted"}
# Runs the commands of the document, and prints a credential for programs and one for pages.
SET_UP = """
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
for command in {commands}:
    call_command(*command, verbosity=0)
user = User.objects.create_superuser("keeper")
client = Client()
client.force_login(user)
call_command("create_api_key", user="keeper", scopes="read write webhooks shelves")
print(client.cookies["sessionid"].value)
"""


class Programs(NamedTuple):
    """Clients of the library with the app: with a key for all scopes, without a credential, and a person's browser."""

    keeper: httpx.Client
    anonymous: httpx.Client
    browser: httpx.Client


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    folder = tmp_path_factory.mktemp("beside")
    write_app(folder)
    variables = {"DJANGO_SETTINGS_MODULE": "shelving.settings", "PYTHONPATH": str(folder)}
    with copy_seeded_database(folder) as url:
        key, session = set_up(os.environ | variables | {"DATABASE_URL": url})
        with serve_library(folder, url, **variables) as service:
            keeper, anonymous, browser = (service.open_client() for _ in range(3))
            with keeper, anonymous, browser:
                keeper.headers["X-API-Key"] = key
                browser.cookies.set("sessionid", session)
                yield Programs(keeper, anonymous, browser)


def write_app(folder: Path) -> None:
    (folder / "shelving").mkdir()
    (folder / "shelving/__init__.py").touch()
    for code in list_code_blocks(DOCUMENT, "python"):
        (folder / code.splitlines()[0].removeprefix("# ")).write_text(code)


def set_up(environment: dict[str, str]) -> list[str]:
    """Returns the API key and the id of a session."""
    [block] = list_code_blocks(DOCUMENT, "sh")
    commands = [line.partition("manage.py ")[2].split() for line in block.splitlines() if "manage.py" in line]
    assert [name for name, *_ in commands] == ["makemigrations", "migrate", "serve"]
    code = SET_UP.format(commands=commands[:-1])
    shell = [sys.executable, "manage.py", "shell", "-v0", "-c", code]
    output = subprocess.run(
        shell, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=PROCESS_TIMEOUT
    )
    return output.stdout.split()[-2:]


@pytest.fixture(scope="module")
def shelf(programs: Programs) -> dict[str, Any]:
    """A shelf for restricted books."""
    created = programs.keeper.post("/api/v2/shelves", json={"name": "Restricted"})
    assert (created.status_code, created.headers["ETag"]) == (201, '"v2-1-1"')
    return dict(created.json())


def test_its_resource_is_one_of_version_2(programs: Programs, shelf: dict[str, Any]) -> None:
    path, etag = f"/api/v2/shelves/{shelf['id']}", {"If-None-Match": '"v2-1-1"'}
    keeper = programs.keeper
    assert keeper.get("/api/v2/shelves").json() == {"results": [shelf], "next": None, "previous": None}
    assert keeper.get(path, headers=etag).status_code == 304
    assert keeper.patch(path, json={"places": "many"}).json()["error"]["code"] == "VALIDATION_ERROR"
    document = keeper.get("/openapi/v2.json").json()
    assert {"/api/v2/shelves", "/api/v2/shelves/{id}"} <= document["paths"].keys()
    assert "shelf.created" in document["webhooks"]


def test_its_scope_is_needed(programs: Programs) -> None:
    assert programs.anonymous.get("/api/v2/shelves").status_code == 401
    metadata = programs.anonymous.get("/.well-known/oauth-authorization-server").json()
    assert metadata["scopes_supported"] == ["read", "write", "webhooks", "shelves"]


def test_its_event_is_in_the_stream(programs: Programs, shelf: dict[str, Any]) -> None:
    [event] = programs.keeper.get("/api/v2/events?kinds=shelf.created").json()["results"]
    assert event["data"] == {"shelf": shelf}


def test_its_signal_follows_each_change_and_its_books_are_hidden(programs: Programs, shelf: dict[str, Any]) -> None:
    """Also on the compiled path, which serves both versions without such an app."""
    for number, version in enumerate(("/api", "/api/v2"), 1):
        created = programs.keeper.post(f"{version}/books", json=RESTRICTED | {"isbn": f"979-{number}"})
        assert created.status_code == 201
        assert programs.anonymous.get(f"{version}/books/{created.json()['id']}").status_code == 404
        listed = programs.anonymous.get(f"{version}/books?genre=Restricted").json()
        assert (listed["results"] if version == "/api/v2" else listed) == []
        shelves = programs.keeper.get("/api/v2/shelves").json()["results"]
        assert shelves == [shelf | {"places": 10 - number}]


def test_its_format_is_exported(programs: Programs) -> None:
    response = programs.anonymous.get("/api/v2/books?title=pride+and", headers={"Accept": "text/x-shelf-list"})
    assert response.text == "Jane Austen: Pride and Prejudice\n"


def test_its_page_is_in_the_bar(programs: Programs, shelf: dict[str, Any]) -> None:
    assert 'href="/admin/shelving/shelf/"' in programs.browser.get("/admin/books/book/lend/").text
    assert "Restricted" in programs.browser.get("/admin/shelving/shelf/").text
