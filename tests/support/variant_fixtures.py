"""Fixtures of tests that compare the two variants of the application, in a small library whose writes are committed.

This module must not import the strategies: the profile of Hypothesis is not yet loaded when pytest imports it.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from books.api.v1 import urls as v1_urls
from books.api.v1.views import BookViewSetV1
from books.api.v2 import urls as v2_urls
from books.api.v2.views import BookViewSetV2
from tests.support.applications import ApplicationVariant, open_client
from tests.support.credentials import Credentials, create_plain_credentials
from tests.support.endpoints import create_endpoint
from tests.support.small_library import restore_books

VERSIONS: dict[str, tuple[Any, Any]] = {"v1": (BookViewSetV1, v1_urls), "v2": (BookViewSetV2, v2_urls)}
Serve = Callable[..., httpx.Client]


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


@pytest.fixture
def serve(api: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Returns a client of the books of a version, whose viewset has these attributes of its own."""
    with ExitStack() as stack, override_settings(COMPILED_PATH=False):

        def open_books(version: str, **attributes: Any) -> httpx.Client:
            base, module = VERSIONS[version]
            view: Any = type("Own", (base,), attributes)
            for pattern in module.urlpatterns:
                if issubclass(getattr(pattern.callback, "cls", object), base):
                    monkeypatch.setattr(pattern, "callback", view.as_view(pattern.callback.actions))
            client = stack.enter_context(open_client())
            client.base_url = httpx.URL(f"http://127.0.0.1/api/{version}/")
            return client

        yield open_books
