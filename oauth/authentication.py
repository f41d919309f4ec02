"""REST framework's authentication by `Authorization: Bearer` or `X-API-Key` (specification, Section 5).

A credential is verified even if the request needs none.
"""

import time
from collections.abc import Mapping
from typing import Any, cast

from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from library_site.api.shipped import remember
from oauth import api_keys
from oauth.credentials import Credential, InvalidCredential, build_challenge
from oauth.scopes import PERMISSIONS, PermissionSet, Rights
from oauth.tokens import access_tokens, revocations

MISPLACED_KEY = "This is the form of an API key, which belongs into the header X-API-Key"


@remember
class BearerAuthentication(BaseAuthentication):
    """Authenticates access tokens, without a database query."""

    def authenticate(self, request: Request) -> tuple[User | AnonymousUser, Credential] | None:
        """Raises InvalidCredential."""
        if (token := find_bearer(request.META)) is None:
            return None
        credential = authenticate_bearer(request.META, token)
        return AnonymousUser() if credential.user_id is None else build_user(credential.user_id), credential

    def authenticate_header(self, request: Request) -> str:
        return build_challenge()


@remember
class APIKeyAuthentication(BaseAuthentication):
    """Authenticates API keys, with one database query."""

    def authenticate(self, request: Request) -> tuple[User, Credential] | None:
        """Raises InvalidCredential."""
        if "HTTP_X_API_KEY" not in request.META:
            return None
        credential = authenticate_key(request.META, PERMISSIONS)
        return build_user(cast("int", credential.user_id)), credential


def find_credential(environ: Mapping[str, Any], asked: PermissionSet) -> Credential | None:
    """Returns the credential in the headers of a request, or None. Raises InvalidCredential.

    For a key, only the permissions `asked` are looked up, which takes less time. The credential is
    incomplete then: the compiled path uses it for this check alone.
    """
    if (token := find_bearer(environ)) is not None:
        return authenticate_bearer(environ, token)
    return authenticate_key(environ, asked) if "HTTP_X_API_KEY" in environ else None


def find_bearer(environ: Mapping[str, Any]) -> str | None:
    """Returns the token in Authorization, which may be empty. Another scheme, such as a proxy's, is no credential."""
    scheme, _, token = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def authenticate_bearer(environ: Mapping[str, Any], token: str) -> Credential:
    """Raises InvalidCredential."""
    if "HTTP_X_API_KEY" in environ:
        raise InvalidCredential("Send one credential, a Bearer token or an API key")
    try:
        claims, rights = verify_token(token, time.time())
    except access_tokens.TokenExpired as error:
        raise InvalidCredential("The access token has expired") from error
    except access_tokens.InvalidToken as error:
        is_key = api_keys.KEY_PATTERN.fullmatch(token)
        raise InvalidCredential(MISPLACED_KEY if is_key else "The access token is not valid") from error
    user_id = claims.user_id
    name = f"app {claims.client_id} for user {user_id}"
    return Credential(name, rights.scopes, user_id, None, claims.sid, claims.client_id, rights.permissions)


def authenticate_key(environ: Mapping[str, Any], asked: PermissionSet) -> Credential:
    """Raises InvalidCredential."""
    return api_keys.get_credential(environ["HTTP_X_API_KEY"], timezone.now(), asked)


def verify_token(token: str, now: float) -> tuple[access_tokens.Claims, Rights]:
    """Returns the claims and the remaining rights of a token. Raises InvalidToken, TokenExpired."""
    claims = access_tokens.verify_access_token(token, now)
    rights = revocations.get_revocations().find_remaining_rights(claims)
    if rights is None:
        raise access_tokens.InvalidToken
    return claims, rights


def build_user(pk: int) -> User:
    """Returns a user without a query; reading any field except the id makes one."""
    user: User = User.from_db("default", ["id"], [pk])
    return user
