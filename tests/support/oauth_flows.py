"""Creates users and apps, and takes them through the steps of OAuth: consent, code, tokens."""

import base64
import re
from collections.abc import Iterable
from hashlib import sha256
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlsplit

import httpx
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Group, User
from django.utils import timezone
from oauth2_provider.models import Application

from oauth import api_keys
from oauth.models import Allowance
from oauth.scopes import SCOPES, select_permissions

SECRET = "a-secret-as-long-as-those-that-are-generated-for-apps"
CALLBACK = "https://app.example/callback"
LOOPBACK = "http://127.0.0.1:51004/callback"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
# A form has the same as its cookie.
CSRF_TOKEN = "t" * 32
CHALLENGE_PARAMETERS = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
# What `parse_oauth_error` returns for frequent errors.
INVALID_REQUEST, INVALID_GRANT, INVALID_SCOPE = (400, "invalid_request"), (400, "invalid_grant"), (400, "invalid_scope")
INVALID_CLIENT, INVALID_TOKEN = (401, "invalid_client"), (401, "invalid_token")


def create_reader(name: str = "reader") -> User:
    return User.objects.create_user(name)


def create_librarian(name: str = "librarian", *others: str) -> User:
    """Returns a user in the group Librarians, and in these others."""
    user = create_reader(name)
    join_groups(user, "Librarians", *others)
    return user


def join_groups(user: User, *names: str) -> None:
    """Without the signal: nobody has a token yet whose rights would change."""
    memberships = [User.groups.through(user=user, group=group) for group in Group.objects.filter(name__in=names)]
    User.groups.through.objects.bulk_create(memberships)


def deactivate(user: User) -> None:
    user.is_active = False
    user.save()


def deactivate_without_signal(user: User) -> None:
    """Uses an UPDATE, which sends no signal."""
    User.objects.filter(pk=user.pk).update(is_active=False)


def create_confidential_app(client_id: str = "bookshop", scopes: str = "read write", **others: Any) -> Application:
    return create_app(client_id, "confidential", CALLBACK, scopes, client_secret=SECRET, **others)


def create_public_app(client_id: str = "shelf", scopes: str = "read write", **others: Any) -> Application:
    """Creates a native app. Its redirect URI names no port: RFC 8252 lets it listen on any."""
    return create_app(client_id, "public", "http://127.0.0.1/callback", scopes, client_secret="", **others)


def create_app(client_id: str, client_type: str, redirect_uris: str, scopes: str, **others: Any) -> Application:
    application: Application = Application.objects.create(
        name=client_id.title(),
        client_id=client_id,
        client_type=client_type,
        redirect_uris=redirect_uris,
        authorization_grant_type="authorization-code",
        **others,
    )
    Allowance.objects.create(application=application, scopes=scopes)
    return application


def sign_in(client: httpx.Client, user: User) -> None:
    """Gives the client a session of the user, which is faster than a sign-in with a password."""
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    client.cookies.set(settings.SESSION_COOKIE_NAME, session.session_key)


def post_form(client: httpx.Client, path: str, form: dict[str, str], **query: str) -> httpx.Response:
    """Sends the form of a page without the page, which most tests are not about."""
    client.cookies.delete(settings.CSRF_COOKIE_NAME)
    client.cookies.set(settings.CSRF_COOKIE_NAME, CSRF_TOKEN)
    return client.post(path, params=query or None, data={**form, "csrfmiddlewaretoken": CSRF_TOKEN})


def submit_sign_in(client: httpx.Client, name: str, password: str, page: str = "/accounts/login") -> httpx.Response:
    return post_form(client, page, {"username": name, "password": password})


def build_authorization_request(application: Application, **changes: str | None) -> dict[str, str]:
    """Returns the parameters of a valid authorization request with these changes; None leaves one out."""
    public = application.client_type == "public"
    valid = {
        "client_id": application.client_id,
        "redirect_uri": LOOPBACK if public else CALLBACK,
        "response_type": "code",
        "state": "from-the-app",
        "scope": "read write",
        **(CHALLENGE_PARAMETERS if public else {}),
    }
    return {name: value for name, value in {**valid, **changes}.items() if value is not None}


def submit_consent(
    client: httpx.Client,
    parameters: dict[str, str],
    allow: bool = True,
    submit_parameters: dict[str, str] | None = None,
    form: dict[str, str] | None = None,
) -> httpx.Response:
    """Submits the consent page as the signed-in user and returns the response.

    Returns the first response where it is not the page. An attacker can send the form to other parameters
    (`submit_parameters`) and with other fields (`form`).
    """
    page = client.get("/oauth/authorize", params=parameters)
    if page.status_code != 200:
        return page
    others = {**read_hidden_fields(page.text), **(form or {}), **({"allow": "yes"} if allow else {})}
    return client.post("/oauth/authorize", params=submit_parameters or parameters, data=others)


def read_hidden_fields(page: str) -> dict[str, str]:
    """Returns the hidden fields of the page's forms; one of them is the CSRF token."""
    fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))
    assert "csrfmiddlewaretoken" in fields
    return fields


def parse_redirect(response: httpx.Response) -> dict[str, str]:
    """Returns the parameters of a redirect's query."""
    assert response.status_code == 302
    return {name: values[0] for name, values in parse_qs(urlsplit(response.headers["Location"]).query).items()}


def post_consent(client: httpx.Client, parameters: dict[str, str]) -> httpx.Response:
    return post_form(client, "/oauth/authorize", {"scopes": " ".join(SCOPES), "allow": "yes"}, **parameters)


def obtain_code(client: httpx.Client, user: User, application: Application, **changes: str | None) -> str:
    sign_in(client, user)
    return parse_redirect(post_consent(client, build_authorization_request(application, **changes)))["code"]


def build_code_request(application: Application, code: str, /, **changes: str | None) -> dict[str, str]:
    """Returns the form of a valid token request with these changes; None leaves a field out."""
    public = application.client_type == "public"
    valid = {
        "grant_type": "authorization_code",
        "client_id": application.client_id,
        "code": code,
        "redirect_uri": LOOPBACK if public else CALLBACK,
        **({"code_verifier": VERIFIER} if public else {"client_secret": SECRET}),
    }
    return {name: value for name, value in {**valid, **changes}.items() if value is not None}


def build_refresh_request(application: Application, refresh_token: str, /, **changes: str | None) -> dict[str, str]:
    public = application.client_type == "public"
    valid = {
        "grant_type": "refresh_token",
        "client_id": application.client_id,
        "refresh_token": refresh_token,
        **({} if public else {"client_secret": SECRET}),
    }
    return {name: value for name, value in {**valid, **changes}.items() if value is not None}


def obtain_tokens(client: httpx.Client, user: User, application: Application, **changes: str | None) -> dict[str, Any]:
    """Goes through the whole flow and returns the response of the token endpoint."""
    code = obtain_code(client, user, application, **changes)
    response = client.post("/oauth/token", data=build_code_request(application, code))
    assert response.status_code == 200, response.text
    tokens: dict[str, Any] = response.json()
    return tokens


def build_bearer_header(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def build_basic_header(client_id: str, secret: str) -> dict[str, str]:
    """Form-encodes both values first (RFC 6749, 2.3.1)."""
    return encode_basic_header(f"{quote_plus(client_id)}:{quote_plus(secret)}".encode())


def encode_basic_header(credentials: bytes) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(credentials).decode()}"}


def find_granted_scope(client: httpx.Client, access_token: str) -> str | None:
    """Returns the scopes that the library grants to an access token, or None if it is not valid."""
    scope: str | None = client.get("/oauth/resource", headers=build_bearer_header(access_token)).json().get("scope")
    return scope


def parse_oauth_error(response: httpx.Response) -> tuple[int, str | None]:
    """Returns the status and the error code of a JSON answer."""
    return response.status_code, response.json().get("error")


def create_user(name: str, permissions: Iterable[str | None]) -> User:
    """Creates a user with these permissions. Without the signal, as in `join_groups`."""
    user, given = User.objects.create_user(name), User.user_permissions.through
    given.objects.bulk_create(given(user=user, permission=one) for one in select_permissions(permissions))
    return user


def create_key_header(user: User, scopes: str = "read write", **options: Any) -> dict[str, str]:
    """Creates an API key for the user and returns the header that sends it."""
    _, text = api_keys.create_key(user, "Test", frozenset(scopes.split()), now=timezone.now(), **options)
    return {"X-API-Key": text}
