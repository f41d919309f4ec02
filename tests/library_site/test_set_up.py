"""`set_up`, which prepares a machine and its database for `serve`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.database_independent


def set_up(database_url: str, key_file: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"DATABASE_URL": database_url, "OAUTH_JWKS_FILE": str(key_file)}
    command = [sys.executable, "manage.py", "set_up", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_it_says_once_what_it_creates(tmp_path: Path) -> None:
    database_url, key_file = f"sqlite:///{tmp_path / 'library.sqlite3'}", tmp_path / "jwks.json"
    first = set_up(database_url, key_file, "--example-books")
    second = set_up(database_url, key_file, "--example-books")
    assert first.stdout.splitlines() == [
        f"Created the key that signs access tokens, in {key_file}. Only its owner may read the file.",
        "Creating the tables of the database.",
        "1000 books added.",
    ]
    assert (first.returncode, second.returncode, second.stdout, second.stderr) == (0, 0, "", "")


def test_a_database_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    failed = set_up("postgresql://127.0.0.1:1/library", tmp_path / "jwks.json")
    assert failed.returncode == 1
    assert failed.stderr.startswith("CommandError: The database of DATABASE_URL does not answer: ")
    assert "Traceback" not in failed.stderr
