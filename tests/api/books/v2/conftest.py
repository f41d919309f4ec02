"""A librarian and her API key."""

import pytest
from django.contrib.auth.models import User

from tests.support.oauth_flows import create_key_header, create_librarian


@pytest.fixture
def librarian(db: None) -> User:
    return create_librarian("ada")


@pytest.fixture
def key(librarian: User) -> dict[str, str]:
    """The header of an API key that may change books."""
    return create_key_header(librarian)
