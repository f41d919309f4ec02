"""A backup of the running library, and what is restored from it."""

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from psycopg import sql
from pytest_django import DjangoAssertNumQueries, Settings

from library_site.deployment import backups
from library_site.management.commands import back_up
from tests.support.books import build_book
from tests.support.endpoints import create_endpoint
from tests.support.postgres import find_binary
from tests.support.program_fixtures import request_dump_programs
from tests.support.server import build_database_url, create_database, drop_database, get_suite_url, run_command
from tests.support.sql import fetch_all
from tests.support.waiting import PROCESS_TIMEOUT
from webhooks.models import Event
from webhooks.stream import is_from_elsewhere

pytestmark = pytest.mark.usefixtures("transactional_db")
LIST_TABLES = {
    "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1",
}
# Encrypts nothing, but reads and writes as a program that does.
ENCODE = f"{sys.executable} -c 'import sys, base64; base64.encode(sys.stdin.buffer, sys.stdout.buffer)'"
# ANALYZE writes the statistics of SQLite.
TABLES_OF_AFTER_RESTORE = {"webhooks_event", "webhooks_restoration", "sqlite_sequence", "sqlite_stat1", "sqlite_stat4"}


@pytest.fixture
def restored_url(tmp_path: Path) -> Iterator[str]:
    """The address of a database that `restore` fills."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{tmp_path / 'restored.sqlite3'}"
        return
    name = create_database("CREATE DATABASE {}")
    yield build_database_url(name)
    drop_database(name)


def restore(backup: Path, url: str) -> None:
    """What docs/operations/runbook.md says."""
    if connection.vendor == "sqlite":
        shutil.copy(backup, url.removeprefix("sqlite:///"))
    else:
        subprocess.run(
            [find_binary("pg_restore"), "--no-owner", f"--dbname={url}", backup], check=True, timeout=PROCESS_TIMEOUT
        )


def read_database(url: str) -> dict[str, Any]:
    """Returns the sorted rows of each table, as PostgreSQL copies them or as SQLite gives them."""
    tables = [name for (name,) in fetch_all(url, LIST_TABLES[connection.vendor])]
    return {table: read_table(url, table) for table in tables}


def read_table(url: str, table: str) -> Any:
    if connection.vendor == "sqlite":
        return sorted(fetch_all(url, f'SELECT * FROM "{table}"'), key=repr)  # noqa: S608  # a name of the database
    statement = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT").format(sql.Identifier(table))
    with psycopg.connect(url) as reader, reader.cursor() as cursor, cursor.copy(statement) as copy:
        return sorted(b"".join(copy).splitlines())


def fill_library(api: httpx.Client) -> None:
    create_endpoint()
    book = api.post("/api/v2/books", json=build_book(title="Ä\\n\t'")).json()
    api.patch(f"/api/v2/books/{book['id']}", json={"year": -1})
    api.delete(f"/api/v2/books/{api.post('/api/v2/books', json=build_book(isbn='gone')).json()['id']}")


@request_dump_programs
def test_a_restored_library_is_equal_to_the_byte(api: httpx.Client, tmp_path: Path, restored_url: str) -> None:
    fill_library(api)
    call_command("back_up", tmp_path / "backup")
    restore(tmp_path / "backup", restored_url)
    original, restored = read_database(get_suite_url()), read_database(restored_url)
    assert restored == original
    assert Event.objects.count() == 4

    run_command(os.environ | {"DATABASE_URL": restored_url}, "after_restore")
    restarted = read_database(restored_url)
    assert {name for name in restarted if restarted[name] != original.get(name)} <= TABLES_OF_AFTER_RESTORE
    assert fetch_all(restored_url, 'SELECT DISTINCT "transaction" FROM webhooks_event') == [(0,)]


@request_dump_programs
def test_the_keys_are_beside_the_copy_for_the_owner_alone(tmp_path: Path, settings: Settings) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "it's # a $key", ["older", "oldest"]
    call_command("back_up", tmp_path / "backup")
    files = {path.name: path for path in tmp_path.iterdir()}
    assert files.keys() == {"backup", "backup.jwks.json", "backup.env", "backup.contents.json"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o600}
    assert files["backup.jwks.json"].read_bytes() == settings.OAUTH_JWKS_FILE.read_bytes()
    text = files["backup.env"].read_text()
    assert shlex.split(text) == ["SECRET_KEY=it's # a $key", "SECRET_KEY_FALLBACKS=older,oldest"]


def test_a_backup_replaces_nothing_and_names_what_cannot_be_written(tmp_path: Path) -> None:
    for name in ("backup.env", "backup.env.encrypted"):
        (tmp_path / name).write_text("of an earlier one")
        with pytest.raises(CommandError, match=rf"{name} exists already"):
            call_command("back_up", tmp_path / "backup")
        assert [path.name for path in tmp_path.iterdir()] == [name]
        (tmp_path / name).unlink()
    with pytest.raises(CommandError, match=r"/nowhere/backup\.part: No such file or directory\."):
        call_command("back_up", tmp_path / "nowhere" / "backup")


def test_a_backup_waits_for_no_other_of_its_name_and_leaves_its_files(tmp_path: Path) -> None:
    with (
        back_up.lock_file(tmp_path / "backup.part"),
        pytest.raises(CommandError, match=r"Another process writes .*\.part\."),
    ):
        call_command("back_up", tmp_path / "backup")
    assert [path.name for path in tmp_path.iterdir()] == ["backup.part"]


def test_a_backup_that_was_finished_meanwhile_is_not_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process renames its file between the opening and the lock."""
    part, backup = tmp_path / "backup.part", tmp_path / "backup"

    def finish_other(*_: object) -> None:
        part.write_text("of the other process")
        part.rename(backup)

    monkeypatch.setattr("fcntl.flock", finish_other)
    with pytest.raises(CommandError, match="Another process writes"):
        call_command("back_up", backup)
    assert backup.read_text() == "of the other process"


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite needs no pg_dump")
def test_without_pg_dump_its_version_and_call_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    version = fetch_all(get_suite_url(), "SHOW server_version")[0][0].partition(".")[0]
    call = r"pg_dump --format=custom --file=FILE"
    with pytest.raises(CommandError, match=rf"of PostgreSQL {version} or later.* {call}"):
        call_command("back_up", tmp_path / "backup")
    assert not list(tmp_path.glob("backup*"))


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite counts no transactions")
def test_events_of_others_do_not_look_like_those_of_a_dump(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    """Between two statements others could write an event, and a worker that starts then would refuse to."""
    with django_assert_num_queries(1):
        assert not is_from_elsewhere()


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite counts no transactions")
def test_a_restored_stream_must_be_restarted(api: httpx.Client, settings: Settings) -> None:
    settings.LIBRARY_PROCESS = "web"
    api.post("/api/v2/books", json=build_book())
    assert "webhooks.E001" not in {message.id for message in run_checks()}
    Event.objects.update(transaction=2**62)
    for settings.LIBRARY_PROCESS in ("web", "worker", "doctor"):
        assert "webhooks.E001" in {message.id for message in run_checks()}
    call_command("after_restore")
    assert "webhooks.E001" not in {message.id for message in run_checks()}


@request_dump_programs
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite counts in the copy")
def test_a_backup_is_counted_as_it_was_copied(
    api: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_client = backups.run_client

    def add_a_book_first(*arguments: str, **options: str) -> None:
        api.post("/api/v2/books", json=build_book())
        run_client(*arguments, **options)

    monkeypatch.setattr(backups, "run_client", add_a_book_first)
    call_command("back_up", tmp_path / "backup")
    assert json.loads((tmp_path / f"backup{back_up.CONTENTS}").read_text())["books_book"] == 0
    monkeypatch.undo()
    assert backups.restore_elsewhere(tmp_path / "backup")["books_book"] == 0


@request_dump_programs
def test_a_backup_is_proven_whole(
    api: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_library(api)
    call_command("back_up", tmp_path / "backup", verify=True)
    found = backups.restore_elsewhere(tmp_path / "backup")
    assert {"books_book", "django_migrations"} <= found.keys() <= {*connection.introspection.table_names()}
    assert not [name for name in found if name.startswith(("books_trigrams", "sqlite_"))]
    assert f"it has all {sum(found.values())} rows" in capsys.readouterr().out
    monkeypatch.setattr(back_up, "restore_elsewhere", lambda _: {**found, "books_book": 7})
    with pytest.raises(CommandError, match="books_book: 7 instead of 1"):
        call_command("back_up", tmp_path / "other", verify=True)
    assert not list(tmp_path.glob("other*"))


@request_dump_programs
def test_a_folder_keeps_encrypted_backups_by_their_time(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.DATA_DIR, settings.BACKUP_ENCRYPT_COMMAND = tmp_path, ENCODE
    folder = tmp_path / "backups"
    folder.mkdir()
    for name in ("library-20200101T000000Z.encrypted", "library-20200101T000000Z.env.encrypted", "of-somebody-else"):
        (folder / name).touch()
    before = timezone.now()
    call_command("back_up", folder, folder=True, days=1, weeks=1, months=1)
    names = {path.name.partition("Z")[2] for path in folder.glob("library-*")}
    assert names == {".encrypted", ".jwks.json.encrypted", ".env.encrypted", ".contents.json.encrypted"}
    assert (folder / "of-somebody-else").exists()
    output = capsys.readouterr().out
    assert "Deleted library-20200101T000000Z." in output
    [keys] = folder.glob("*.jwks.json.encrypted")
    assert f"the signing keys to {keys}, the secret keys to" in output
    assert b64decode(keys.read_bytes()) == settings.OAUTH_JWKS_FILE.read_bytes()
    made_at = backups.read_backup_time()
    assert made_at
    assert made_at >= before


# Encrypts the database, and no file after it.
ENCODE_FIRST = f"""{sys.executable} -c '
import sys
data = sys.stdin.buffer.read()
sys.exit("SECRET_KEY" if b"keys" in data[:99] else sys.stdout.buffer.write(b"x") - 1)'"""


@request_dump_programs
def test_a_backup_that_is_not_encrypted_is_none(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it would leave can be read: the dump, the signing keys and SECRET_KEY."""
    settings.DATA_DIR = tmp_path
    messages = {
        f"{sys.executable} -c exit(1)": "BACKUP_ENCRYPT_COMMAND failed: .*backup is not encrypted",
        ENCODE_FIRST: "backup.jwks.json is not encrypted",
        f"{tmp_path}/no-such-command": "no-such-command: No such file or directory",
    }
    for settings.BACKUP_ENCRYPT_COMMAND, message in messages.items():
        with pytest.raises(CommandError, match=message):
            call_command("back_up", tmp_path / "backup")
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith("backup")] == []
        assert (backups.read_backup_time(), capsys.readouterr().out) == (None, "")
