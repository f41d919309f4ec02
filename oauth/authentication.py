"""Who sends a request, by `Authorization: Bearer` or `X-API-Key` (specification, Section 5).

Named in the settings of REST framework. A credential that is presented is checked, whatever it is for.
"""

import time

from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from oauth import api_keys
from oauth.credentials import Credential
from oauth.scopes import ScopeSet
from oauth.tokens import access_tokens, revocations

CHALLENGE = 'Bearer realm="Library API"'


class InvalidCredential(AuthenticationFailed):
    """RFC 6750, 3.1."""

    default_detail = "The credential is not valid"
    challenge = f'{CHALLENGE}, error="invalid_token"'


class BearerAuthentication(BaseAuthentication):
    """Access tokens, without a query."""

    def authenticate(self, request: Request) -> tuple[User, Credential] | None:
        """Raises BadCredential."""
        given = request.META.get("HTTP_AUTHORIZATION")
        if given is None:
            return None
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer":
            raise InvalidCredential("Authorization takes a Bearer token")
        if "HTTP_X_API_KEY" in request.META:
            raise InvalidCredential("Send one credential, a Bearer token or an API key")
        return authenticate_token(token.strip())

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


class APIKeyAuthentication(BaseAuthentication):
    """API keys, by one query."""

    def authenticate(self, request: Request) -> tuple[User, Credential] | None:
        """Raises BadCredential."""
        given = request.META.get("HTTP_X_API_KEY")
        if given is None:
            return None
        now = timezone.now()
        try:
            key = api_keys.find_key(given, now)
        except api_keys.InvalidKey as error:
            raise InvalidCredential("The API key is not valid") from error
        api_keys.record_use(key, now)
        return build_user(key.owner_id), Credential(f"key {key.pk}", key.scopes, key=key.pk)


def authenticate_token(token: str) -> tuple[User, Credential]:
    """Raises BadCredential."""
    try:
        claims, left = verify_token(token, time.time())
    except access_tokens.TokenExpired as error:
        raise InvalidCredential("The access token has expired") from error
    except access_tokens.InvalidToken as error:
        raise InvalidCredential("The access token is not valid") from error
    name = f"app {claims.client_id} for user {claims.user_id}"
    return build_user(claims.user_id), Credential(name, left, authorization=claims.sid)


def verify_token(token: str, now: float) -> tuple[access_tokens.Claims, ScopeSet]:
    """What an access token says, and what is left of its scopes. Raises InvalidToken, TokenExpired."""
    claims = access_tokens.verify_access_token(token, now)
    left = revocations.get_revocations().get_remaining_scopes(claims.sid, claims.user_id, claims.scopes)
    if left is None:
        raise access_tokens.InvalidToken
    return claims, left


def build_user(pk: int) -> User:
    """Without a query until another member is read."""
    found: User = User.from_db("default", ["id"], [pk])
    return found
