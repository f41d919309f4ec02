"""Machines with folders of their own that start with one new database."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from django.db import connection

from tests.support.forked_commands import run_forked
from tests.support.server import build_database_url, create_database, drop_database


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor == "sqlite", reason="machines share no file of SQLite")
def test_one_creates_the_keys_and_the_others_ask_for_them(tmp_path: Path) -> None:
    name = create_database("CREATE DATABASE {}")
    folders = [tmp_path / "one", tmp_path / "other"]

    def deploy(folder: Path) -> "CompletedProcess[str]":
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment |= {"DATA_DIR": str(folder), "DATABASE_URL": build_database_url(name), "SET_UP": "true"}
        return run_forked(environment, "deploy", "--skip-checks")

    try:
        with ThreadPoolExecutor(2) as pool:
            starts = list(pool.map(deploy, folders))
    finally:
        drop_database(name)
    errors = "".join(start.stderr for start in starts)
    assert sorted(start.returncode for start in starts) == [0, 1], errors
    assert "The library has a database already, and no keys in" in errors
    assert sorted((folder / "jwks.json").exists() for folder in folders) == [False, True]
