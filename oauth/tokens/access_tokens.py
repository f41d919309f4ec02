"""Generates and verifies access tokens: JWTs as in RFC 9068, signed with RS256, verified without the database."""

import secrets
import time
from base64 import urlsafe_b64decode
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid4

import msgspec
from django.conf import settings
from joserfc import jws
from joserfc.errors import JoseError
from oauthlib.common import Request

from oauth.scopes import NO_PERMISSIONS, SCOPES, PermissionSet, Rights, ScopeSet
from oauth.tokens import jwks

ALGORITHM = "RS256"
TOKEN_TYPE = "at+jwt"  # noqa: S105  # no secret
REGISTRY = jws.JWSRegistry(algorithms=[ALGORITHM])
# The allowed difference between the clocks of machines, in seconds.
LEEWAY = 30
MAX_TOKEN_LENGTH = 4096
# The size of the cache of verified tokens: checking a signature takes most of the time.
MAX_VERIFIED_TOKENS = 1000


class InvalidToken(Exception):
    """The library did not issue this token."""


class TokenExpired(InvalidToken):
    """The library issued this token, and it has expired."""


class TokenHeader(msgspec.Struct):
    kid: str | None = None


class Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The claims of a token. Times are Unix seconds; `sid` is the authorization's id.

    `entitlements` are the permissions of the user (RFC 9068, 2.2.3.1). Tokens of earlier releases have none.
    """

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
    entitlements: PermissionSet = NO_PERMISSIONS

    @property
    def user_id(self) -> int | None:
        """None for a token that an app got for itself: then the subject is the app (RFC 9068, 2.2)."""
        return None if self.sub == self.client_id else int(self.sub)

    @property
    def scopes(self) -> ScopeSet:
        return frozenset(self.scope.split()) & SCOPES.keys()

    @property
    def rights(self) -> Rights:
        return Rights(self.scopes, self.entitlements)


def get_audience() -> str:
    return f"{settings.PUBLIC_URL}/api"


def generate_access_token(request: Request) -> str:
    """The toolkit's ACCESS_TOKEN_GENERATOR."""
    now = int(time.time())
    claims = Claims(
        iss=settings.PUBLIC_URL,
        aud=get_audience(),
        sub=str(request.user.pk) if request.user else request.client.client_id,
        client_id=request.client.client_id,
        scope=" ".join(request.scopes),
        sid=request.authorization_id,
        jti=uuid4().hex,
        iat=now,
        exp=now + request.expires_in,
        entitlements=request.permissions,
    )
    key = jwks.get_keys().signing_key
    header = {"alg": ALGORITHM, "typ": TOKEN_TYPE, "kid": key.kid}
    return jws.serialize_compact(header, msgspec.json.encode(claims, order="deterministic"), key, registry=REGISTRY)


def generate_refresh_token(request: Request, refresh_token: bool = False) -> str:
    """The toolkit's REFRESH_TOKEN_GENERATOR: 256 random bits."""
    return secrets.token_urlsafe(32)


def verify_access_token(token: str, now: float) -> Claims:
    """Returns the claims of a valid token (RFC 9068, 4). Raises InvalidToken, TokenExpired."""
    claims = verify_signature(token, now)
    is_ours = claims.iss == settings.PUBLIC_URL and claims.aud == get_audience() and claims.scopes
    if not is_ours or claims.iat > now + LEEWAY or claims.nbf > now + LEEWAY or not has_subject(claims):
        raise InvalidToken
    if claims.exp <= now:
        raise TokenExpired
    return claims


def has_subject(claims: Claims) -> bool:
    """Whether the subject is a user, or, where that is allowed, the app itself."""
    return settings.OAUTH_CLIENT_CREDENTIALS if claims.sub == claims.client_id else claims.sub.isdecimal()


def verify_signature(token: str, now: float) -> Claims:
    """Returns the claims of a token with a valid signature. Raises InvalidToken."""
    if len(token) > MAX_TOKEN_LENGTH:
        raise InvalidToken
    try:
        key = jwks.get_keys().find(read_kid(token.partition(".")[0]), now)
        if not key:
            raise InvalidToken
        return read_claims(token, key)
    except (JoseError, msgspec.DecodeError, ValueError, TypeError) as error:
        raise InvalidToken from error


@lru_cache(maxsize=100)
def read_kid(header: str) -> str | None:
    """Returns the `kid` of a token's encoded header. All tokens of a key have the same header."""
    return msgspec.json.decode(urlsafe_b64decode(header + "=="), type=TokenHeader).kid


@lru_cache(maxsize=MAX_VERIFIED_TOKENS)
def read_claims(token: str, key: jwks.CacheableKey) -> Claims:
    """Returns the claims of a token signed with this key. Raises InvalidToken and joserfc's errors.

    Valid tokens are cached, because a client sends its token many times. Expiry and revocation are checked elsewhere.
    """
    jws_object = jws.extract_compact(token.encode())
    if not is_acceptable_header(jws_object.headers()) or not jws.validate_compact(jws_object, key, registry=REGISTRY):
        raise InvalidToken
    return msgspec.json.decode(jws_object.payload, type=Claims)


def is_acceptable_header(header: dict[str, Any]) -> bool:
    """Whether the header has our algorithm and type (RFC 8725, 3.1, 3.11), and no critical extension."""
    is_access_token = str(header.get("typ")).lower() in (TOKEN_TYPE, f"application/{TOKEN_TYPE}")
    return header.get("alg") == ALGORITHM and is_access_token and "crit" not in header
