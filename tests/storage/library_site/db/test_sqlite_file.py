"""The file of an SQLite database is for its owner alone."""

from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.db import connection

from library_site.db.config import SQLITE_WAL_LIMIT
from library_site.db.sql import execute
from library_site.db.writer_queue import WAL_SUFFIX
from tests.support.server import run_in_shell

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="The files of PostgreSQL are its own")

# Some people's umask keeps nothing from anybody.
CREATE_TABLE = """
import os
from pathlib import Path
from django.db import connection

os.umask(0)
connection.cursor().execute("CREATE TABLE shelf (id integer)")
file = Path(connection.settings_dict["NAME"])
modes = {path.name: oct(path.stat().st_mode & 0o777) for path in file.parent.iterdir()}
assert modes == {name: "0o600" for name in (file.name, f"{file.name}-wal", f"{file.name}-shm")}, modes
"""


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    run_in_shell(f"sqlite:///{tmp_path / 'library.sqlite3'}", CREATE_TABLE)


def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "library.sqlite3"
    file.touch(0o660)
    file.chmod(0o660)
    run_in_shell(f"sqlite:///{file}", "from django.db import connection; connection.ensure_connection()")
    assert file.stat().st_mode & 0o777 == 0o660


def test_a_file_that_everybody_reaches_gives_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "library.sqlite3"
    file.touch()
    monkeypatch.setitem(connection.settings_dict, "NAME", str(file))
    for folder_mode, file_mode, is_reported in ((0o755, 0o644, True), (0o755, 0o640, False), (0o700, 0o644, False)):
        file.chmod(file_mode)
        tmp_path.chmod(folder_mode)
        assert ("library_site.W005" in {message.id for message in run_checks()}) == is_reported


@pytest.mark.django_db(transaction=True)
def test_the_log_becomes_small_again_after_a_large_transaction() -> None:
    log = Path(f"{connection.settings_dict['NAME']}{WAL_SUFFIX}")
    execute("CREATE TABLE shelf (content)")
    execute("INSERT INTO shelf VALUES (zeroblob(2 * %s))", [SQLITE_WAL_LIMIT])
    large = log.stat().st_size
    # The one ends the log, the other begins it anew.
    execute("DELETE FROM shelf")
    execute("DROP TABLE shelf")
    assert log.stat().st_size <= SQLITE_WAL_LIMIT < large
