"""Access tokens: JWTs after RFC 9068, signed with RS256, checked without a look-up."""

import secrets
import time
from typing import Any
from uuid import UUID, uuid4

import msgspec
from django.conf import settings
from joserfc import jws
from joserfc.errors import JoseError
from oauthlib.common import Request

from oauth.scopes import SCOPES, ScopeSet
from oauth.tokens import jwks

ALGORITHM = "RS256"
TOKEN_TYPE = "at+jwt"  # noqa: S105  # no secret
REGISTRY = jws.JWSRegistry(algorithms=[ALGORITHM])
AUDIENCE = f"{settings.PUBLIC_URL}/api"
# Seconds by which clocks may differ.
LEEWAY = 30
MAX_TOKEN_LENGTH = 4096


class InvalidToken(Exception):
    """It is none of ours."""


class TokenExpired(InvalidToken):
    """It was one of ours."""


class Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a token says; times are Unix seconds, `sid` is the authorization's id."""

    iss: str
    aud: str
    sub: str
    client_id: str
    scope: str
    sid: UUID
    jti: str
    iat: int
    exp: int
    nbf: int = 0

    @property
    def user_id(self) -> int:
        return int(self.sub)

    @property
    def scopes(self) -> ScopeSet:
        return frozenset(self.scope.split()) & SCOPES.keys()


def generate_access_token(request: Request) -> str:
    """The toolkit's ACCESS_TOKEN_GENERATOR."""
    now = int(time.time())
    claims = Claims(
        iss=settings.PUBLIC_URL,
        aud=AUDIENCE,
        sub=str(request.user.pk),
        client_id=request.client.client_id,
        scope=" ".join(request.scopes),
        sid=request.authorization_id,
        jti=uuid4().hex,
        iat=now,
        exp=now + request.expires_in,
    )
    key = jwks.get_keys().signing
    header = {"alg": ALGORITHM, "typ": TOKEN_TYPE, "kid": key.kid}
    return jws.serialize_compact(header, msgspec.json.encode(claims), key, registry=REGISTRY)


def generate_refresh_token(request: Request, refresh_token: bool = False) -> str:
    """The toolkit's REFRESH_TOKEN_GENERATOR: chance, 256 bits of it."""
    return secrets.token_urlsafe(32)


def verify_access_token(token: str, now: float) -> Claims:
    """What a token of ours says (RFC 9068, 4). Raises InvalidToken, TokenExpired."""
    claims = verify_signature(token, now)
    ours = claims.iss == settings.PUBLIC_URL and claims.aud == AUDIENCE and claims.scopes
    if not ours or claims.iat > now + LEEWAY or claims.nbf > now + LEEWAY or not claims.sub.isdecimal():
        raise InvalidToken
    if claims.exp <= now:
        raise TokenExpired
    return claims


def verify_signature(token: str, now: float) -> Claims:
    """What a token with a good signature says. Raises InvalidToken."""
    if len(token) > MAX_TOKEN_LENGTH:
        raise InvalidToken
    try:
        unverified = jws.extract_compact(token.encode())
        header = unverified.headers()
        key = jwks.get_keys().find(header.get("kid"), now)
        if not key or not is_acceptable_header(header) or not jws.validate_compact(unverified, key, registry=REGISTRY):
            raise InvalidToken
        return msgspec.json.decode(unverified.payload, type=Claims)
    except (JoseError, msgspec.DecodeError, ValueError, TypeError) as error:
        raise InvalidToken from error


def is_acceptable_header(header: dict[str, Any]) -> bool:
    """Pins what the header may say (RFC 8725, 3.1, 3.11); extensions that must be understood are not."""
    typed = str(header.get("typ")).lower() in (TOKEN_TYPE, f"application/{TOKEN_TYPE}")
    return header.get("alg") == ALGORITHM and typed and "crit" not in header
