"""People, apps and the steps between them, as the tests of the authorization server need them."""

import base64
import re
from hashlib import sha256
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Group, User
from django.utils import timezone
from oauth2_provider.models import Application

from oauth import api_keys
from oauth.models import Allowance

SECRET = "a-secret-as-long-as-those-that-are-generated-for-apps"
CALLBACK = "https://app.example/callback"
LOOPBACK = "http://127.0.0.1:51004/callback"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
CHALLENGED = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}


def reader(name: str = "reader") -> User:
    return User.objects.create_user(name)


def librarian(name: str = "librarian") -> User:
    user = reader(name)
    user.groups.add(Group.objects.get(name="Librarians"))
    return user


def deactivated(user: User) -> None:
    user.is_active = False
    user.save()


def deactivated_silently(user: User) -> None:
    """As no signal tells of it."""
    User.objects.filter(pk=user.pk).update(is_active=False)


def confidential_app(client_id: str = "bookshop", scopes: str = "read write", **members: Any) -> Application:
    return app(client_id, "confidential", CALLBACK, scopes, client_secret=SECRET, **members)


def public_app(client_id: str = "shelf", scopes: str = "read write", **members: Any) -> Application:
    """A native app: RFC 8252 lets it listen on any port."""
    return app(client_id, "public", "http://127.0.0.1/callback", scopes, client_secret="", **members)


def app(client_id: str, client_type: str, redirect_uris: str, scopes: str, **members: Any) -> Application:
    made: Application = Application.objects.create(
        name=client_id.title(),
        client_id=client_id,
        client_type=client_type,
        redirect_uris=redirect_uris,
        authorization_grant_type="authorization-code",
        **members,
    )
    Allowance.objects.create(application=made, scopes=scopes)
    return made


def sign_in(client: httpx.Client, user: User) -> None:
    """By a session of the user's, without the cost of a password."""
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    client.cookies.set(settings.SESSION_COOKIE_NAME, session.session_key)


def request_for(application: Application, **changed: str | None) -> dict[str, str]:
    """The parameters of a good authorization request; None leaves one out."""
    public = application.client_type == "public"
    good = {
        "client_id": application.client_id,
        "redirect_uri": LOOPBACK if public else CALLBACK,
        "response_type": "code",
        "state": "from-the-app",
        "scope": "read write",
        **(CHALLENGED if public else {}),
    }
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


def consent(
    client: httpx.Client,
    parameters: dict[str, str],
    allow: bool = True,
    sent_to: dict[str, str] | None = None,
    form: dict[str, str] | None = None,
) -> httpx.Response:
    """What a signed-in person's answer on the consent page is answered; what comes instead of the page, if it is none.

    `sent_to` and `form` are what an attacker makes of the answer: other parameters, and members besides.
    """
    page = client.get("/oauth/authorize", params=parameters)
    if page.status_code != 200:
        return page
    members = {**hidden(page.text), **(form or {}), **({"allow": "yes"} if allow else {})}
    return client.post("/oauth/authorize", params=sent_to or parameters, data=members)


def hidden(page: str) -> dict[str, str]:
    """What a page's forms say without being asked, the token against forgery among it."""
    found = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))
    assert "csrfmiddlewaretoken" in found
    return found


def told(response: httpx.Response) -> dict[str, str]:
    """The query of a redirect."""
    assert response.status_code == 302
    return {name: values[0] for name, values in parse_qs(urlsplit(response.headers["Location"]).query).items()}


def code_for(client: httpx.Client, user: User, application: Application, **changed: str | None) -> str:
    sign_in(client, user)
    return told(consent(client, request_for(application, **changed)))["code"]


def redemption(application: Application, code: str, /, **changed: str | None) -> dict[str, str]:
    """The form of a good token request; None leaves a member out."""
    public = application.client_type == "public"
    good = {
        "grant_type": "authorization_code",
        "client_id": application.client_id,
        "code": code,
        "redirect_uri": LOOPBACK if public else CALLBACK,
        **({"code_verifier": VERIFIER} if public else {"client_secret": SECRET}),
    }
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


def refreshing(application: Application, refresh_token: str, /, **changed: str | None) -> dict[str, str]:
    public = application.client_type == "public"
    good = {
        "grant_type": "refresh_token",
        "client_id": application.client_id,
        "refresh_token": refresh_token,
        **({} if public else {"client_secret": SECRET}),
    }
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


def tokens_for(client: httpx.Client, user: User, application: Application, **changed: str | None) -> dict[str, Any]:
    """The whole flow: what the token endpoint answered."""
    code = code_for(client, user, application, **changed)
    response = client.post("/oauth/token", data=redemption(application, code))
    assert response.status_code == 200, response.text
    answered: dict[str, Any] = response.json()
    return answered


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def refusal(response: httpx.Response) -> tuple[int, str | None]:
    """Status and error of an answer in JSON."""
    return response.status_code, response.json().get("error")


def key_for(user: User, scopes: str = "read write", **options: Any) -> dict[str, str]:
    """The header with a new key of the user's."""
    _, text = api_keys.create_key(user, "Test", frozenset(scopes.split()), now=timezone.now(), **options)
    return {"X-API-Key": text}
