"""`set_up`, which prepares a machine and its database for `serve`."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.documents import ROOT
from tests.support.forked_commands import run_forked
from tests.support.server import copy_seeded_database
from tests.support.waiting import PROCESS_TIMEOUT


def run_in_folder(folder: Path, *command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """With no key but those in DATA_DIR, which is this folder."""
    path = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return run_forked({**path, "DATA_DIR": str(folder), "LOG_LEVEL": "error", **variables}, *command)


def test_two_first_starts_wait_for_each_other_and_say_once_what_they_create(tmp_path: Path) -> None:
    url, key = f"sqlite:///{tmp_path}/library.sqlite3", tmp_path / "secret_key"
    for refused in [
        run_in_folder(tmp_path, *command, DATABASE_URL=url) for command in (["migrate"], ["shell", "-c", ""])
    ]:
        assert refused.stderr == (
            f"SECRET_KEY is not set and {key} does not exist. `manage.py set_up` makes one, and so does `serve` with"
            " SET_UP.\n"
        )
    command = ["set_up", "--example-books"]
    with ThreadPoolExecutor() as threads:
        starts = list(threads.map(lambda _: run_in_folder(tmp_path, *command, DATABASE_URL=url), range(2)))
    first, second = sorted(starts, key=lambda start: len(start.stdout), reverse=True)
    assert first.stdout.splitlines() == [
        f"Created the secret key, in {key}.",
        f"Created the key that signs access tokens, in {tmp_path}/jwks.json. Only its owner may read the file.",
        "Creating the tables of the database.",
        "1000 books added.",
        f"Copying the styles and scripts of the pages to {tmp_path}/static.",
    ]
    database = f"Database: SQLite, {tmp_path}/library.sqlite3\n"
    assert (first.returncode, second.returncode, second.stdout, second.stderr) == (0, 0, "", database)
    assert (len(key.read_text()) > 40, stat.S_IMODE(key.stat().st_mode)) == (True, 0o600)
    assert run_in_folder(tmp_path, "migrate", DATABASE_URL=url).returncode == 0
    key.unlink()
    third = run_in_folder(tmp_path, "set_up", DATABASE_URL=url)
    assert f"The library has a database already, and no secret key in {key}." in third.stderr
    assert not key.exists()


def test_the_suite_is_run_by_the_command_of_django(tmp_path: Path) -> None:
    """In this folder the suite only says how it was called."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/__main__.py").write_text("import os, sys; print(sys.argv[1:], 'LIBRARY_PROCESS' in os.environ)")
    call = [sys.executable, f"{ROOT}/manage.py", "test", "tests/api", "-k", "book"]
    run = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PROCESS_TIMEOUT)
    assert (run.returncode, run.stdout) == (0, "['tests/api', '-k', 'book'] False\n")


def test_a_deployment_creates_keys_only_when_asked_and_no_second_ones(tmp_path: Path) -> None:
    refused = run_in_folder(tmp_path, "deploy", DATABASE_URL=f"sqlite:///{tmp_path}/library.sqlite3")
    # A worker with a key of its own could read no secret of the others.
    worker = run_in_folder(tmp_path, "deliver_webhooks", SET_UP="true")
    assert "SECRET_KEY is not set" in refused.stderr
    assert "SECRET_KEY is not set" in worker.stderr
    created = run_in_folder(tmp_path, "deploy", SET_UP="true", LOG_LEVEL="warning")
    assert created.returncode == 0
    assert created.stdout.splitlines()[1] == f"Created the secret key, in {tmp_path}/secret_key."
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    # It ends with the checks.
    assert ("library_site.W005" in created.stderr, "oauth.W002" in created.stderr) == (False, True)
    (tmp_path / "jwks.json").rename(tmp_path / "elsewhere")
    second = run_in_folder(tmp_path, "deploy", DATABASE_URL=f"sqlite:///{tmp_path}/library.sqlite3")
    assert (second.returncode, second.stdout, (tmp_path / "jwks.json").exists()) == (1, "", False)
    assert f"The library has a database already, and no keys in {tmp_path}/jwks.json." in second.stderr


def test_another_folder_does_not_give_a_library_other_keys(tmp_path: Path) -> None:
    other = tmp_path / "other"
    with copy_seeded_database(tmp_path) as database_url:
        start = run_in_folder(other, "deploy", SET_UP="true", DATABASE_URL=database_url)
    assert f"no keys in {other}/jwks.json and no secret key in {other}/secret_key." in start.stderr
    assert [path.name for path in other.iterdir()] == ["set_up.lock"]


def test_a_database_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    failed = run_in_folder(tmp_path, "set_up", DATABASE_URL="postgresql://127.0.0.1:1/library")
    assert failed.returncode == 1
    assert failed.stderr.startswith("CommandError: The database of DATABASE_URL does not answer: ")
    assert "Traceback" not in failed.stderr
