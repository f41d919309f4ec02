"""Tests of rules need no database."""

import pytest


@pytest.fixture(scope="session")
def django_db_setup() -> None:
    pytest.fail(
        "A test in tests/rules uses no database. One that needs it lies in tests/api, tests/admin or tests/storage."
    )
