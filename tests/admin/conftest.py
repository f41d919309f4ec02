"""People who use the admin."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client


@pytest.fixture
def astrid(db: None) -> User:
    """A member of the group Librarians."""
    user = User.objects.create_user("astrid", password="x", is_staff=True)
    user.groups.add(Group.objects.get(name="Librarians"))
    return user


@pytest.fixture
def librarian(client: Client, astrid: User) -> Client:
    """A browser in which astrid is signed in."""
    client.force_login(astrid)
    return client


@pytest.fixture
def berta(db: None) -> User:
    """A member of the group Head librarians alone."""
    user = User.objects.create_user("berta", is_staff=True)
    user.groups.add(Group.objects.get(name="Head librarians"))
    return user


@pytest.fixture
def head(client: Client, berta: User) -> Client:
    """A browser in which berta is signed in."""
    client.force_login(berta)
    return client
