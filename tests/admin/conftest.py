"""People who use the admin."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.admin_pages import create_staff


@pytest.fixture
def astrid(db: None) -> User:
    """A member of the group Librarians."""
    return create_staff("astrid", "Librarians", password="x")


@pytest.fixture
def librarian(client: Client, astrid: User) -> Client:
    """A browser in which astrid is signed in."""
    client.force_login(astrid)
    return client


@pytest.fixture
def berta(db: None) -> User:
    """A member of the group Head librarians alone."""
    return create_staff("berta", "Head librarians")


@pytest.fixture
def head(client: Client, berta: User) -> Client:
    """A browser in which berta is signed in."""
    client.force_login(berta)
    return client
