"""The commands that tests run in copies of one process behave as those that start by themselves."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.forked_commands import run_forked
from tests.support.sql import fetch_all
from tests.support.waiting import PROCESS_TIMEOUT

CODE = """
import os, sys
from pathlib import Path
from django.conf import settings
from django.db import connection
from oauth.tokens import access_tokens, jwks
print(access_tokens.get_audience(), jwks.get_key_file().path)
print(settings.PUBLIC_URL, connection.settings_dict["NAME"], os.environ["LIBRARY_PROCESS"])
print(Path.cwd(), sys.stdin.read())
print("to the errors", file=sys.stderr)
sys.exit(3)
"""


@pytest.mark.parametrize(
    ("command", "variables"),
    [
        (("shell", "-v0", "-c", CODE), {"PUBLIC_URL": "https://library.example", "OAUTH_JWKS_FILE": "/other.json"}),
        (("check",), {"PORT": "eighty", "PUBLIC_URL": "no address"}),
        (("--version",), {}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_copy_behaves_as_a_start(tmp_path: Path, command: tuple[str, ...], variables: dict[str, str]) -> None:
    environment = os.environ | {"DATABASE_URL": f"sqlite:///{tmp_path}/other.sqlite3"} | variables
    call = [sys.executable, "manage.py", *command]
    start = subprocess.run(
        call,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PROCESS_TIMEOUT,
    )
    copy = run_forked(environment, *command)
    assert (copy.returncode, copy.stdout, copy.stderr) == (start.returncode, start.stdout, start.stderr)


def test_a_copy_leaves_the_settings_of_the_next_alone() -> None:
    code = "from django.conf import settings; print(settings.PORT)"
    ports = [run_forked(os.environ | {"PORT": port}, "shell", "-v0", "-c", code).stdout for port in ("1", "2")]
    assert ports == ["1\n", "2\n"]


def test_a_copy_writes_to_its_own_database_alone(tmp_path: Path) -> None:
    code = "from library_site.db.sql import execute; execute('CREATE TABLE shelf (number integer)')"
    paths = [tmp_path / f"{number}.sqlite3" for number in range(3)]
    for path in paths[:2]:
        copy = run_forked(os.environ | {"DATABASE_URL": f"sqlite:///{path}"}, "shell", "-v0", "-c", code)
        assert (copy.returncode, copy.stderr) == (0, f"Database: SQLite, {path}\n")
    tables = [fetch_all(f"sqlite:///{path}", "SELECT name FROM sqlite_master") for path in paths]
    assert tables == [[("shelf",)], [("shelf",)], []]
