"""`set_up`, which prepares a machine and its database for `serve`."""

import os
import stat
import subprocess
import sys
from pathlib import Path

from tests.support.forked_commands import run_forked
from tests.support.settings import REQUIRED_SECRETS
from tests.support.waiting import PROCESS_TIMEOUT


def set_up(
    database_url: str, key_file: Path, *options: str, command: str = "set_up"
) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"DATABASE_URL": database_url, "OAUTH_JWKS_FILE": str(key_file)}
    return run_forked(environment, command, *options)


def test_it_says_once_what_it_creates(tmp_path: Path) -> None:
    database_url, key_file = f"sqlite:///{tmp_path / 'library.sqlite3'}", tmp_path / "jwks.json"
    first = set_up(database_url, key_file, "--example-books")
    second = set_up(database_url, key_file, "--example-books")
    assert first.stdout.splitlines() == [
        f"Created the key that signs access tokens, in {key_file}. Only its owner may read the file.",
        "Creating the tables of the database.",
        "1000 books added.",
    ]
    database = f"Database: SQLite, {tmp_path}/library.sqlite3\n"
    assert (first.returncode, second.returncode, second.stdout, second.stderr) == (0, 0, "", database)


def test_two_first_starts_wait_for_each_other(tmp_path: Path) -> None:
    variables = {"DATA_DIR": str(tmp_path), "DATABASE_URL": f"sqlite:///{tmp_path / 'library.sqlite3'}"}
    environment = os.environ | REQUIRED_SECRETS | variables
    command = [sys.executable, "manage.py", "set_up"]
    starts = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [start.communicate(timeout=PROCESS_TIMEOUT)[1] for start in starts]
    assert ([start.returncode for start in starts], errors) == ([0, 0], [errors[0]] * 2)


def test_a_deployment_ends_with_the_checks_and_makes_no_second_key(tmp_path: Path) -> None:
    database_url, key_file = f"sqlite:///{tmp_path / 'library.sqlite3'}", tmp_path / "jwks.json"
    first = set_up(database_url, key_file, command="deploy")
    key_file.rename(tmp_path / "elsewhere")
    second = set_up(database_url, key_file, command="deploy")
    assert (first.returncode, "library_site.W005" in first.stderr, "oauth.W002" in first.stderr) == (0, False, True)
    assert (second.returncode, second.stdout, key_file.exists()) == (1, "", False)
    assert f"The library has a database already, and no keys in {key_file}." in second.stderr


def start_deploy(folder: Path, command: str = "deploy", **variables: str) -> "subprocess.Popen[str]":
    """With no secret key but one in DATA_DIR, which is this folder."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment |= {"DATA_DIR": str(folder), "LOG_LEVEL": "error", **variables}
    call = [sys.executable, "manage.py", command]
    return subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_an_empty_folder_gets_a_secret_key_only_when_asked(tmp_path: Path) -> None:
    refused = start_deploy(tmp_path, DATABASE_URL=f"sqlite:///{tmp_path}/library.sqlite3").communicate()
    # A worker with a key of its own could read no secret of the others.
    worker = start_deploy(tmp_path, "deliver_webhooks", SET_UP="true").communicate()
    created = start_deploy(tmp_path, SET_UP="true").communicate()
    assert "SECRET_KEY is not set" in refused[1]
    assert "SECRET_KEY is not set" in worker[1]
    assert created[0].splitlines()[1] == f"Created the secret key, in {tmp_path}/secret_key."
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    assert (tmp_path / "library.sqlite3").exists()


def test_another_folder_does_not_give_a_library_other_keys(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    start_deploy(one, SET_UP="true").communicate()
    starts = start_deploy(other, SET_UP="true", DATABASE_URL=f"sqlite:///{one}/library.sqlite3")
    errors = starts.communicate()[1]
    assert f"no keys in {other}/jwks.json and no secret key in {other}/secret_key." in errors
    assert [path.name for path in other.iterdir()] == ["set_up.lock"]


def test_a_database_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    failed = set_up("postgresql://127.0.0.1:1/library", tmp_path / "jwks.json")
    assert failed.returncode == 1
    assert failed.stderr.startswith("CommandError: The database of DATABASE_URL does not answer: ")
    assert "Traceback" not in failed.stderr
