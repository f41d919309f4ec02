"""What is told of a token (RFC 7662, 2.2)."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from oauth2_provider.models import Application, RefreshToken

from oauth import scopes
from oauth.models import Authorization
from oauth.server.validators import alive, digest, family
from oauth.tokens import access_tokens

INACTIVE = {"active": False}


def described(token: str, client: Application, now: datetime) -> dict[str, Any]:
    """Any access token, and refresh tokens of this client; nothing of others, and of those that are over."""
    try:
        claims = access_tokens.verified(token, now.timestamp())
    except access_tokens.InvalidToken:
        return of_refresh_token(token, client, now)
    left = left_now(claims)
    if left is None:
        return INACTIVE
    return {
        "active": True,
        "token_type": "Bearer",
        "iss": settings.PUBLIC_URL,
        "aud": access_tokens.AUDIENCE,
        "sub": str(claims.user_id),
        "client_id": claims.client_id,
        "scope": scopes.text(left),
        "jti": claims.jti,
        "iat": claims.iat,
        "exp": claims.exp,
    }


def left_now(claims: access_tokens.Claims) -> scopes.Granted | None:
    """What is left of a token's scopes by the database, not by the list: who asks wants to know what holds now."""
    alive = Authorization.objects.filter(pk=claims.sid, ended_at=None).exists()
    allowed = scopes.allowed(User.objects.filter(pk=claims.user_id)) if alive else {}
    rights = allowed.get(claims.user_id)
    return claims.scopes & rights if rights else None


def of_refresh_token(token: str, client: Application, now: datetime) -> dict[str, Any]:
    found = RefreshToken.objects.select_related("access_token", "user")
    stored = found.filter(token_checksum=digest(token), application=client, revoked=None).first()
    authorization = stored and family(stored)
    if not stored or not authorization or not alive(stored, authorization, now):
        return INACTIVE
    return {
        "active": True,
        "iss": settings.PUBLIC_URL,
        "sub": str(stored.user_id),
        "client_id": client.client_id,
        "scope": authorization.scopes,
        "iat": int(stored.created.timestamp()),
    }
