"""Access tokens as others would make them."""

import hmac
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Any
from uuid import uuid4

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from django.conf import settings
from joserfc.jwk import RSAKey

from oauth.tokens import jwks

HASHES: dict[str, hashes.HashAlgorithm] = {
    "RS256": hashes.SHA256(),
    "RS384": hashes.SHA384(),
    "RS512": hashes.SHA512(),
    "PS256": hashes.SHA256(),
}


def spoken(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims."""
    header, claims, _ = token.split(".")
    return json.loads(decoded(header)), json.loads(decoded(claims))


def decoded(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def claims_of(user_id: Any, **changed: Any) -> dict[str, Any]:
    """Those of a good token; None leaves one out."""
    now = int(time.time())
    good = {
        "iss": settings.PUBLIC_URL,
        "aud": f"{settings.PUBLIC_URL}/api",
        "sub": str(user_id),
        "client_id": "bookshop",
        "scope": "read write",
        "sid": str(uuid4()),
        "jti": uuid4().hex,
        "iat": now,
        "exp": now + 3600,
    }
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


def forged(claims: Any, key: RSAKey | bytes | None = None, **changed: Any) -> str:
    """A token of these claims, and of a good header but for what is changed; signed by our own key if by no other.

    A key of bytes is HS256's.
    """
    own = jwks.get_keys().signing
    good = {"alg": "RS256", "typ": "at+jwt", "kid": own.kid}
    header = {name: value for name, value in {**good, **changed}.items() if value is not None}
    payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    text = f"{encoded(json.dumps(header).encode())}.{encoded(payload)}"
    return f"{text}.{encoded(signature(text.encode(), key or own, header['alg']))}"


def signature(text: bytes, key: RSAKey | bytes, algorithm: str) -> bytes:
    if isinstance(key, bytes):
        return hmac.digest(key, text, sha256)
    assert key.private_key
    hashed = HASHES.get(algorithm, hashes.SHA256())
    padded = padding.PSS(padding.MGF1(hashed), 32) if algorithm == "PS256" else padding.PKCS1v15()
    return key.private_key.sign(text, padded, hashed)
