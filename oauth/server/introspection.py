"""What is told of a token (RFC 7662, 2.2)."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from oauth2_provider.models import Application, RefreshToken

from oauth import scopes
from oauth.credentials import sha256_hex
from oauth.models import Authorization
from oauth.server.validators import find_authorization, is_usable
from oauth.tokens import access_tokens

INACTIVE = {"active": False}


def introspect_token(token: str, client: Application, now: datetime) -> dict[str, Any]:
    """Any access token, and refresh tokens of this client; nothing of others, and of those that are over."""
    try:
        claims = access_tokens.verify_access_token(token, now.timestamp())
    except access_tokens.InvalidToken:
        return introspect_refresh_token(token, client, now)
    left = get_current_scopes(claims)
    if left is None:
        return INACTIVE
    return {
        "active": True,
        "token_type": "Bearer",
        "iss": settings.PUBLIC_URL,
        "aud": access_tokens.AUDIENCE,
        "sub": str(claims.user_id),
        "client_id": claims.client_id,
        "scope": scopes.format_scopes(left),
        "jti": claims.jti,
        "iat": claims.iat,
        "exp": claims.exp,
    }


def get_current_scopes(claims: access_tokens.Claims) -> scopes.ScopeSet | None:
    """What is left of a token's scopes by the database, not by the list: who asks wants to know what holds now."""
    alive = Authorization.objects.filter(pk=claims.sid, ended_at=None).exists()
    allowed = scopes.get_allowed_scopes(User.objects.filter(pk=claims.user_id)) if alive else {}
    rights = allowed.get(claims.user_id)
    return claims.scopes & rights if rights else None


def introspect_refresh_token(token: str, client: Application, now: datetime) -> dict[str, Any]:
    found = RefreshToken.objects.select_related("access_token", "user")
    stored = found.filter(token_checksum=sha256_hex(token), application=client, revoked=None).first()
    authorization = stored and find_authorization(stored)
    if not stored or not authorization or not is_usable(stored, authorization, now):
        return INACTIVE
    return {
        "active": True,
        "iss": settings.PUBLIC_URL,
        "sub": str(stored.user_id),
        "client_id": client.client_id,
        "scope": authorization.scopes,
        "iat": int(stored.created.timestamp()),
    }
