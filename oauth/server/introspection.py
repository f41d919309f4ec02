"""The content of introspection responses (RFC 7662, 2.2)."""

from datetime import datetime
from typing import Any

from django.conf import settings
from oauth2_provider.models import Application, RefreshToken

from oauth import scopes
from oauth.credentials import sha256_hex
from oauth.models import Authorization
from oauth.server.validators import find_authorization, is_usable
from oauth.tokens import access_tokens
from oauth.tokens.revocations import limit_rights

INACTIVE = {"active": False}


def introspect_token(token: str, client: Application, now: datetime) -> dict[str, Any]:
    """Describes any access token, and refresh tokens of this client; all other tokens are inactive."""
    try:
        claims = access_tokens.verify_access_token(token, now.timestamp())
    except access_tokens.InvalidToken:
        return introspect_refresh_token(token, client, now)
    rights = find_current_rights(claims)
    if rights is None:
        return INACTIVE
    entitlements = {"entitlements": sorted(rights.permissions)} if rights.permissions else {}
    return {
        "active": True,
        "token_type": "Bearer",
        "iss": settings.PUBLIC_URL,
        "aud": access_tokens.get_audience(),
        "sub": claims.sub,
        "client_id": claims.client_id,
        "scope": scopes.format_scopes(rights.scopes),
        "jti": claims.jti,
        "iat": claims.iat,
        "exp": claims.exp,
        **entitlements,
    }


def find_current_rights(claims: access_tokens.Claims) -> scopes.Rights | None:
    """Reads a token's remaining rights from the database: the list of revocations can be seconds old."""
    if not Authorization.objects.filter(pk=claims.sid, ended_at=None).exists():
        return None
    if claims.user_id is None:
        return claims.rights
    return limit_rights(claims.rights, scopes.get_user_rights(claims.user_id))


def introspect_refresh_token(token: str, client: Application, now: datetime) -> dict[str, Any]:
    refresh_tokens = RefreshToken.objects.select_related("access_token", "user")
    refresh_token = refresh_tokens.filter(token_checksum=sha256_hex(token), application=client, revoked=None).first()
    authorization = refresh_token and find_authorization(refresh_token)
    if not refresh_token or not authorization or not is_usable(refresh_token, authorization, now):
        return INACTIVE
    return {
        "active": True,
        "iss": settings.PUBLIC_URL,
        "sub": str(refresh_token.user_id),
        "client_id": client.client_id,
        "scope": authorization.scopes,
        "iat": int(refresh_token.created.timestamp()),
    }
