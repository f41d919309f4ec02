"""Which apps there may be, and what becomes of their secrets."""

import httpx
import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone
from oauth2_provider.models import Application

from oauth.models import APIKey, Authorization
from oauth.server import registration
from tests.support import oauth_flows

pytestmark = pytest.mark.django_db

GRANTED = frozenset({"read", "write"})


@pytest.fixture(autouse=True)
def no_app(db: None) -> None:
    """Nor the documentation's own."""
    Application.objects.all().delete()


def app(**members: str) -> Application:
    """One that is fit, and not registered."""
    fit = {"name": "Bookshop", "client_type": "confidential", "redirect_uris": oauth_flows.CALLBACK}
    return Application(**{**fit, **members})


def registered(**members: str) -> Application:
    made = app(**members)
    registration.register_app(made, GRANTED)
    return made


def test_an_app_gets_a_secret_that_is_kept_as_a_hash() -> None:
    made = app()
    secret = registration.register_app(made, GRANTED)
    stored = Application.objects.get(client_id=made.client_id)
    assert len(secret) == 128
    assert secret not in stored.client_secret
    assert stored.client_secret.startswith("generated_secret$")
    assert (stored.authorization_grant_type, stored.allowance.scopes) == ("authorization-code", "read write")


def test_a_public_app_has_no_secret() -> None:
    made = app(client_type="public")
    assert registration.register_app(made, GRANTED) == ""
    assert Application.objects.get(pk=made.pk).client_secret == ""


def test_a_registered_app_is_let_in(api: httpx.Client) -> None:
    made = app()
    secret = registration.register_app(made, GRANTED)
    code = oauth_flows.code_for(api, oauth_flows.librarian(), made)
    answer = api.post("/oauth/token", data=oauth_flows.redemption(made, code, client_secret=secret))
    assert answer.json()["scope"] == "read write"


def test_a_public_app_is_let_in_without_a_secret(api: httpx.Client) -> None:
    made = registered(client_type="public", redirect_uris="http://127.0.0.1/callback")
    assert oauth_flows.tokens_for(api, oauth_flows.librarian(), made)["scope"] == "read write"


def test_no_blank_secret_speaks_for_a_public_app(api: httpx.Client) -> None:
    made = registered(client_type="public")
    answer = api.post("/oauth/introspect", data={"token": "any"}, auth=(made.client_id, ""))
    assert answer.status_code == 401


def test_of_two_secrets_the_newer_is_good(api: httpx.Client) -> None:
    made = app()
    old = registration.register_app(made, GRANTED)
    new = registration.renew_secret(made)

    def status(secret: str) -> int:
        return api.post("/oauth/introspect", data={"token": "any"}, auth=(made.client_id, secret)).status_code

    assert (status(old), status(new)) == (401, 200)
    assert new not in Application.objects.get(pk=made.pk).client_secret


def test_a_public_app_gets_no_new_secret() -> None:
    with pytest.raises(registration.NoSecret):
        registration.renew_secret(registered(client_type="public"))


@pytest.mark.parametrize(
    "uri",
    [
        "https://app.example/callback",
        "https://app.example",
        "https://app.example:8443/callback?from=library",
        "https://[2001:db8::1]/callback",
        "http://127.0.0.1/callback",
        "http://127.0.0.1:51004/callback",
        "http://[::1]:8080/",
        "http://localhost:3000/callback",
        "https://one.example/ https://two.example/\nhttp://localhost/",
    ],
)
def test_fit_redirect_uris(uri: str) -> None:
    assert registered(redirect_uris=uri).redirect_uris == uri


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "  \n ",
        "/callback",
        "app.example/callback",
        "//app.example/callback",
        "https:/app.example",
        "https:///callback",
        "http://app.example/callback",
        "http://127.0.0.1.evil.example/",
        "http://localhost.evil.example/",
        "http://127.0.0.2/",
        "https://app.example/callback#",
        "https://app.example/#fragment",
        "https://user@app.example/",
        "https://user:password@app.example/",
        "https://good.example@evil.example/",
        "https://good.example\\@evil.example/",
        "https://evil.example\\.good.example/",
        "https://*.example.org/",
        "https://app.example;script-src/",
        "https://app.example'none'/",
        "https://app.exämple/",
        "https://app.example/ü",
        "https://app.example:99999/",
        "https://app.example:/",
        "https://app.example:٨٠/",
        "https://[::1/",
        "https://[v1.x]/",
        "https://app.example/\0",
        "javascript:alert(1)",
        "data:text/html,x",
        "com.example.app:/callback",
        "https://good.example/ http://evil.example/",
        " ".join(f"https://app.example/{number}" for number in range(21)),
    ],
)
def test_unfit_redirect_uris(uri: str) -> None:
    with pytest.raises(ValidationError):
        registered(redirect_uris=uri)
    assert not Application.objects.exists()


@pytest.mark.parametrize("name", ["", " ", "n" * 101, "a\0b", "a\nb", "bank\u202eelpmaxe", "\u200b", "\ud800"])
def test_unfit_names(name: str) -> None:
    with pytest.raises(ValidationError):
        registered(name=name)
    assert not Application.objects.exists()


def test_an_app_may_be_granted_something() -> None:
    with pytest.raises(ValidationError):
        registration.register_app(app(), frozenset())
    assert not Application.objects.exists()


def test_access_beyond_what_an_app_may_now_have_ends(api: httpx.Client) -> None:
    app, librarian = oauth_flows.confidential_app(), oauth_flows.librarian()
    token = oauth_flows.tokens_for(api, librarian, app)["access_token"]
    narrow = oauth_flows.tokens_for(api, librarian, app, scope="read")["access_token"]
    key = {"name": "import", "scopes": "write"}
    assert api.post("/api/v2/api-keys", json=key, headers=oauth_flows.bearer(token)).status_code == 201

    registration.change_app(app, frozenset({"read"}), timezone.now())

    assert Authorization.objects.get(ended_at=None).scopes == "read"
    assert not APIKey.objects.filter(revoked_at=None).exists()
    assert api.get("/api/books", headers=oauth_flows.bearer(narrow)).status_code == 200


def test_a_change_keeps_access_and_secret(api: httpx.Client) -> None:
    app = oauth_flows.confidential_app()
    tokens = oauth_flows.tokens_for(api, oauth_flows.librarian(), app)
    app.name = "Bookshop and Café"
    registration.change_app(app, GRANTED | {"webhooks"}, timezone.now())
    answer = api.post("/oauth/refresh", data=oauth_flows.refreshing(app, tokens["refresh_token"]))
    assert answer.status_code == 200
