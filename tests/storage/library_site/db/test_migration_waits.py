"""What is said before a migration runs that makes others wait."""

from io import StringIO
from typing import Any

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader

from library_site.db import migration_waits
from library_site.db.migration_waits import REWRITE_SECONDS, estimate_seconds
from library_site.management.commands import migrate
from tests.support.books_admin import create_book

pytestmark = pytest.mark.usefixtures("db")
STATE = MigrationLoader(None).project_state()
ADD_FIELD = migrations.AddField("book", "shelf", models.TextField(null=True))
NEW_TABLE = migrations.CreateModel("shelf", [("id", models.BigAutoField(primary_key=True))])


def build_migration(*listed: Any) -> migrations.Migration:
    kind = type("Migration", (migrations.Migration,), {"operations": list(listed)})
    built: migrations.Migration = kind("0099_next", "books")
    return built


def test_a_table_that_is_written_anew_makes_writers_of_sqlite_wait() -> None:
    for number in range(3):
        create_book(isbn=f"isbn-{number}")
    hidden = migrations.SeparateDatabaseAndState(database_operations=[ADD_FIELD], state_operations=[ADD_FIELD])
    seconds = [
        estimate_seconds(build_migration(*listed), STATE, connection) for listed in ([ADD_FIELD], [hidden], [NEW_TABLE])
    ]
    expected = 3 * REWRITE_SECONDS if connection.vendor == "sqlite" else 0
    assert seconds == [pytest.approx(expected), pytest.approx(expected), 0]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL holds nobody")
@pytest.mark.parametrize(("is_new", "line"), [(False, "books.0027_import_corrections: changes"), (True, "")])
def test_the_wait_is_said_before_the_migration(monkeypatch: pytest.MonkeyPatch, *, is_new: bool, line: str) -> None:
    migration = MigrationLoader(connection).get_migration("books", "0027_import_corrections")
    monkeypatch.setattr(migrate, "estimate_seconds", lambda *_: 7.7)
    output = StringIO()
    command = migrate.Command(stdout=output)
    command.database, command.is_new, command.verbosity = connection, is_new, 0
    command.migration_progress_callback("apply_start", migration)
    assert output.getvalue().partition(" of the library")[0] == line
    assert migration_waits.count_rows(connection, "no such table") == 0
