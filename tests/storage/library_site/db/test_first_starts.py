"""Machines with folders of their own that start with one new database."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from tests.support.server import build_database_url, create_database, drop_database
from tests.support.waiting import PROCESS_TIMEOUT


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor == "sqlite", reason="machines share no file of SQLite")
def test_one_creates_the_keys_and_the_others_ask_for_them(tmp_path: Path) -> None:
    name = create_database("CREATE DATABASE {}")
    folders = [tmp_path / "one", tmp_path / "other"]
    try:
        starts = [start_deploy(folder, build_database_url(name)) for folder in folders]
        errors = [start.communicate(timeout=PROCESS_TIMEOUT)[1] for start in starts]
    finally:
        drop_database(name)
    assert sorted(start.returncode for start in starts) == [0, 1], errors
    assert "The library has a database already, and no keys in" in "".join(errors)
    assert sorted((folder / "jwks.json").exists() for folder in folders) == [False, True]


def start_deploy(folder: Path, database_url: str) -> "subprocess.Popen[str]":
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment |= {"DATA_DIR": str(folder), "DATABASE_URL": database_url, "SET_UP": "true"}
    command = [sys.executable, "manage.py", "deploy", "--skip-checks"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
