"""Fixtures of tests that compare the two variants of the application, in a small library whose writes are committed.

This module must not import the strategies: the profile of Hypothesis is not yet loaded when pytest imports it.
"""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from tests.support.applications import ApplicationVariant
from tests.support.credentials import Credentials, create_plain_credentials
from tests.support.endpoints import create_endpoint
from tests.support.small_library import restore_books


@pytest.fixture(scope="session")
def compiled(static_files: None) -> ApplicationVariant:
    return ApplicationVariant(compiled=True)


@pytest.fixture(scope="session")
def plain(static_files: None) -> ApplicationVariant:
    return ApplicationVariant(compiled=False)


@pytest.fixture
def owner(transactional_db: None) -> User:
    return User.objects.create_user("owner", is_superuser=True)


@pytest.fixture
def library(owner: User) -> Credentials:
    """Stores BOOKS and an endpoint, and returns the plain credentials."""
    create_endpoint()
    credentials = create_plain_credentials(owner)
    restore_books()
    return credentials


@pytest.fixture(params=["compiled", "plain"])
def variant(request: pytest.FixtureRequest, library: Credentials) -> Iterator[ApplicationVariant]:
    """Each variant in turn, with its setting."""
    variant: ApplicationVariant = request.getfixturevalue(request.param)
    with variant.override_settings():
        yield variant
