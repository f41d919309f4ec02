"""What is said of a connection."""

import re

import pytest
from django.db import connection

from library_site.db.connections import describe_database

pytestmark = pytest.mark.usefixtures("db")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="of SQLite")
def test_sqlite_is_described_by_its_file() -> None:
    assert describe_database(connection) == f"SQLite, {connection.settings_dict['NAME']}"


@pytest.mark.skipif(connection.vendor != "postgresql", reason="of PostgreSQL")
def test_postgresql_is_described_without_a_password() -> None:
    connection.ensure_connection()
    name = connection.settings_dict["NAME"]
    assert re.fullmatch(rf"PostgreSQL, {name} at [^ :]+:[0-9]+ as [^ :]+", describe_database(connection))
