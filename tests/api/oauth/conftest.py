"""The people and apps of these tests, and commits, which the transaction of a test does not have."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from oauth2_provider.models import Application

from books.history import actors
from tests.support.account_pages import PASSWORD
from tests.support.oauth_flows import create_confidential_app, create_librarian, create_public_app


@pytest.fixture(autouse=True)
def commits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Does at once what waits for the end of the transaction, which is rolled back."""
    monkeypatch.setattr(transaction, "on_commit", lambda function, **_: function())
    yield
    # Their rows are gone.
    actors.remembered_actors.clear()


@pytest.fixture
def no_apps(db: None) -> None:
    """Deletes all apps, also that of the documentation pages."""
    Application.objects.all().delete()


@pytest.fixture
def bookshop(db: None) -> Application:
    return create_confidential_app()


@pytest.fixture
def shelf(db: None) -> Application:
    return create_public_app()


@pytest.fixture(params=[create_confidential_app, create_public_app])
def app(request: pytest.FixtureRequest, db: None) -> Application:
    """An app of each type in turn."""
    app: Application = request.param()
    return app


@pytest.fixture
def librarian(db: None) -> User:
    return create_librarian()


@pytest.fixture
def jane(db: None) -> User:
    return User.objects.create_user("jane", "jane@library.example", PASSWORD)
