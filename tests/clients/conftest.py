"""For the OAuth clients the browser of a person who is signed in, and registered apps."""

import secrets
from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

from tests.support.oauth_flows import CALLBACK, LOOPBACK, SECRET, read_hidden_fields
from tests.support.server import Service, run_in_shell

PASSWORD = secrets.token_urlsafe(16)
REGISTRATION = f"""
from tests.support.oauth_flows import create_confidential_app, create_librarian, create_public_app
person = create_librarian("lena")
person.set_password({PASSWORD!r})
person.save()
create_confidential_app("catalogue")
create_public_app("scanner")
"""


class App(NamedTuple):
    """A registered app, and how it authenticates (RFC 8414, token_endpoint_auth_methods_supported)."""

    method: str
    client_id: str
    redirect_uri: str
    secret: str | None


PUBLIC = App("none", "scanner", LOOPBACK, None)
BASIC = App("client_secret_basic", "catalogue", CALLBACK, SECRET)
POST = App("client_secret_post", "catalogue", CALLBACK, SECRET)


APPS = [PUBLIC, BASIC, POST]


@pytest.fixture(params=APPS, ids=lambda app: app.method)
def app(request: pytest.FixtureRequest) -> App:
    selected_app: App = request.param
    return selected_app


@pytest.fixture(scope="session")
def person(service: Service) -> Iterator[httpx.Client]:
    """The browser of a librarian who is signed in. The fixture registers the apps, too."""
    run_in_shell(service.database_url, REGISTRATION)
    with service.open_client() as browser:
        page = browser.get("/accounts/login")
        form = {**read_hidden_fields(page.text), "username": "lena", "password": PASSWORD}
        assert browser.post("/accounts/login", data=form).status_code == 302
        yield browser
