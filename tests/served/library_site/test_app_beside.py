"""The app of docs/extending.md, as it stands there, beside the library, and the ways of Django that hold for it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.books import build_book
from tests.support.documents import list_code_blocks
from tests.support.server import copy_seeded_database, serve_library
from tests.support.waiting import PROCESS_TIMEOUT

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs/extending.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the app lies."""
    folder = tmp_path_factory.mktemp("beside")
    for code in list_code_blocks(DOCUMENT, "python"):
        file = folder / code.splitlines()[0].removeprefix("# ")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)
    for path in ("", "management", "management/commands"):
        (folder / "reviews" / path / "__init__.py").touch()
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx.Client]:
    """A client of the library with the app, after the commands of the document."""
    with copy_seeded_database(folder) as url:
        [block] = list_code_blocks(DOCUMENT, "sh")
        commands = [line.split()[1:] for line in block.splitlines() if line.startswith(".venv/bin/python ")]
        assert commands.pop()[:2] == ["manage.py", "serve"]
        for command in commands:
            run(folder, "reviews.settings", url, *command)
        settings = {"DJANGO_SETTINGS_MODULE": "reviews.settings", "PYTHONPATH": str(folder)}
        with serve_library(folder, url, **settings) as service, service.open_client() as client:
            yield client


def run(folder: Path, settings: str, database_url: str, *command: str) -> None:
    environment = {"DJANGO_SETTINGS_MODULE": settings, "PYTHONPATH": str(folder), "DATABASE_URL": database_url}
    process = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=PROCESS_TIMEOUT,
    )
    assert process.returncode == 0, process.stdout + process.stderr


def test_its_resource_is_one_of_version_2(client: httpx.Client) -> None:
    book = client.post("/api/v2/books", json=build_book(genre="Novel")).json()
    created = client.post("/api/v2/reviews", json={"book": book["id"], "stars": 5})
    review = {"id": created.json()["id"], "book": book["id"], "stars": 5, "genre": "Novel"}
    assert (created.status_code, created.json()) == (201, review)
    refused = client.post("/api/v2/reviews", json={"book": 0})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "VALIDATION_ERROR")
    document = client.get("/openapi.json").json()
    assert document["paths"]["/api/v2/reviews"]["get"]["tags"] == ["Reviews, version 2"]


def test_its_receiver_follows_each_change(client: httpx.Client) -> None:
    """Also of a request that the compiled path would answer without such an app."""
    book = client.post("/api/v2/books", json=build_book(genre="Novel")).json()
    review = client.post("/api/v2/reviews", json={"book": book["id"]}).json()
    client.put(f"/api/books/{book['id']}", json={"genre": "Poem"})
    assert client.get(f"/api/v2/reviews/{review['id']}").json() == review | {"genre": "Poem"}


@pytest.mark.usefixtures("gettext")
def test_what_a_django_developer_may_rely_on_holds(folder: Path, client: httpx.Client) -> None:
    """Runs after the commands of the document, which make the app's migration."""
    url = f"sqlite:///{folder / 'ways.sqlite3'}"
    run(folder, "tests.beside.settings", url, "-m", "pytest", "-p", "no:cacheprovider", "tests/beside")
