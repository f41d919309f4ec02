"""The rules for apps at registration and at a change."""

import httpx
import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone
from oauth2_provider.models import Application

from oauth.models import APIKey, Authorization
from oauth.server import registration
from tests.support.oauth_flows import (
    CALLBACK,
    build_bearer_header,
    create_confidential_app,
    create_librarian,
    obtain_tokens,
)

pytestmark = pytest.mark.usefixtures("no_apps")

SCOPES = frozenset({"read", "write"})


def build_app(**fields: str) -> Application:
    """Returns a valid app that is not registered."""
    values = {"name": "Bookshop", "client_type": "confidential", "redirect_uris": CALLBACK}
    return Application(**{**values, **fields})


def test_valid_redirect_uris_are_accepted() -> None:
    for uri in (
        "https://app.example:8443/callback?from=library",
        "https://[2001:db8::1]/callback",
        "http://[::1]:8080/",
        "https://one.example/ https://two.example/\nhttp://localhost/",
    ):
        application = build_app(redirect_uris=uri)
        registration.register_app(application, SCOPES)
        assert application.redirect_uris == uri


INVALID_URIS = [
    "  \n ",
    "/callback",
    "https:///callback",
    "http://127.0.0.1.evil.example/",
    "https://app.example/callback#",
    "https://user:password@app.example/",
    "https://good.example\\@evil.example/",
    "https://app.example;script-src/",
    "https://app.exämple/",
    "https://app.example/ü",
    "https://app.example:99999/",
    "https://app.example:٨٠/",
    "https://[::1/",
    "com.example.app:/callback",
    "https://good.example/ http://evil.example/",
    " ".join(f"https://app.example/{number}" for number in range(21)),
]
INVALID_NAMES = ["", " ", "n" * 101, "a\0b", "a\nb", "bank\u202eelpmaxe", "\u200b", "\ud800"]


def test_invalid_uris_names_and_scopes_are_refused() -> None:
    apps = [*(build_app(redirect_uris=uri) for uri in INVALID_URIS), *(build_app(name=name) for name in INVALID_NAMES)]
    for application, scopes in (*((app, SCOPES) for app in apps), (build_app(), frozenset[str]())):
        with pytest.raises(ValidationError):
            registration.register_app(application, scopes)
        assert not Application.objects.exists()


def test_access_beyond_the_new_scopes_of_an_app_ends(api: httpx.Client) -> None:
    app, librarian = create_confidential_app(), create_librarian("librarian", "Developers")
    token = obtain_tokens(api, librarian, app)["access_token"]
    read_token = obtain_tokens(api, librarian, app, scope="read")["access_token"]
    key = {"name": "import", "scopes": "write"}
    assert api.post("/api/v2/api-keys", json=key, headers=build_bearer_header(token)).status_code == 201

    registration.change_app(app, frozenset({"read"}), timezone.now())

    assert Authorization.objects.get(ended_at=None).scopes == "read"
    assert not APIKey.objects.filter(revoked_at=None).exists()
    assert api.get("/api/books", headers=build_bearer_header(read_token)).status_code == 200
