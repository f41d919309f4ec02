"""REST framework's authentication by `Authorization: Bearer` or `X-API-Key` (specification, Section 5).

A credential is verified even if the request needs none.
"""

import time
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from oauth import api_keys
from oauth.credentials import Credential
from oauth.scopes import ALL_SCOPES, ScopeSet
from oauth.tokens import access_tokens, revocations

CHALLENGE = 'Bearer realm="Library API"'


class InvalidCredential(AuthenticationFailed):
    """RFC 6750, 3.1."""

    default_detail = "The credential is not valid"
    challenge = f'{CHALLENGE}, error="invalid_token"'


class BearerAuthentication(BaseAuthentication):
    """Authenticates access tokens, without a database query."""

    def authenticate(self, request: Request) -> tuple[User, Credential] | None:
        """Raises InvalidCredential."""
        if "HTTP_AUTHORIZATION" not in request.META:
            return None
        user_id, claims, remaining_scopes = verify_bearer(request.META)
        name = f"app {claims.client_id} for user {user_id}"
        return build_user(user_id), Credential(name, remaining_scopes, authorization=claims.sid)

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


class APIKeyAuthentication(BaseAuthentication):
    """Authenticates API keys, with one database query."""

    def authenticate(self, request: Request) -> tuple[User, Credential] | None:
        """Raises InvalidCredential."""
        if "HTTP_X_API_KEY" not in request.META:
            return None
        key = use_key(request.META, ALL_SCOPES)
        return build_user(key.owner_id), Credential(f"key {key.pk}", key.scopes, key.pk, key.authorization)


def find_scopes(environ: Mapping[str, Any], requested_scopes: ScopeSet) -> ScopeSet | None:
    """Returns which of these scopes the credential of a request has; None if the request has no credential.

    For requests outside REST framework. Raises InvalidCredential.
    """
    if "HTTP_AUTHORIZATION" in environ:
        _, _, remaining_scopes = verify_bearer(environ)
        return remaining_scopes & requested_scopes
    return use_key(environ, requested_scopes).scopes if "HTTP_X_API_KEY" in environ else None


def verify_bearer(environ: Mapping[str, Any]) -> tuple[int, access_tokens.Claims, ScopeSet]:
    """Returns what `verify_token` returns for the token of a request. Raises InvalidCredential."""
    scheme, _, token = environ["HTTP_AUTHORIZATION"].partition(" ")
    if scheme.lower() != "bearer":
        raise InvalidCredential("Authorization takes a Bearer token")
    if "HTTP_X_API_KEY" in environ:
        raise InvalidCredential("Send one credential, a Bearer token or an API key")
    try:
        return verify_token(token.strip(), time.time())
    except access_tokens.TokenExpired as error:
        raise InvalidCredential("The access token has expired") from error
    except access_tokens.InvalidToken as error:
        raise InvalidCredential("The access token is not valid") from error


def use_key(environ: Mapping[str, Any], requested_scopes: ScopeSet) -> api_keys.ActiveKey:
    """Finds the key of a request and records its use. Raises InvalidCredential."""
    now = timezone.now()
    try:
        key = api_keys.find_key(environ["HTTP_X_API_KEY"], now, requested_scopes)
    except api_keys.InvalidKey as error:
        raise InvalidCredential("The API key is not valid") from error
    api_keys.record_use(key, now)
    return key


def verify_token(token: str, now: float) -> tuple[int, access_tokens.Claims, ScopeSet]:
    """Returns the user's id, the claims and the remaining scopes of a token. Raises InvalidToken, TokenExpired."""
    claims = access_tokens.verify_access_token(token, now)
    user_id, granted = claims.user_id, claims.scopes
    remaining_scopes = revocations.get_revocations().get_remaining_scopes(claims.sid, user_id, granted)
    if remaining_scopes is None:
        raise access_tokens.InvalidToken
    return user_id, claims, remaining_scopes


def build_user(pk: int) -> User:
    """Returns a user without a query; reading any other field than the id makes one."""
    user: User = User.from_db("default", ["id"], [pk])
    return user
