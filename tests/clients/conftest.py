"""What both clients need of the served library: a person who signed in, and apps to let in."""

import secrets
from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

from tests.support.oauth_flows import CALLBACK, LOOPBACK, SECRET, hidden
from tests.support.serving import Service, in_shell

PASSWORD = secrets.token_urlsafe(16)
REGISTRATION = f"""
from tests.support.oauth_flows import confidential_app, librarian, public_app
person = librarian("lena")
person.set_password({PASSWORD!r})
person.save()
confidential_app("catalogue")
public_app("scanner")
"""


class App(NamedTuple):
    """How an app was registered, and how it authenticates (RFC 8414, token_endpoint_auth_methods_supported)."""

    method: str
    client_id: str
    redirect_uri: str
    secret: str | None


PUBLIC = App("none", "scanner", LOOPBACK, None)
BASIC = App("client_secret_basic", "catalogue", CALLBACK, SECRET)
POST = App("client_secret_post", "catalogue", CALLBACK, SECRET)


@pytest.fixture(params=[PUBLIC, BASIC, POST], ids=lambda app: app.method)
def app(request: pytest.FixtureRequest) -> App:
    registered: App = request.param
    return registered


@pytest.fixture(scope="session")
def person(service: Service) -> Iterator[httpx.Client]:
    """The browser of a librarian who signed in; the apps are registered with it."""
    in_shell(service.database_url, REGISTRATION)
    with service.client() as browser:
        page = browser.get("/accounts/login")
        form = {**hidden(page.text), "username": "lena", "password": PASSWORD}
        assert browser.post("/accounts/login", data=form).status_code == 302
        yield browser
