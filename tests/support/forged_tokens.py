"""Decodes access tokens and forges others, as an attacker would."""

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

from oauth.scopes import PERMISSIONS
from oauth.tokens import jwks

HASHES: dict[str, hashes.HashAlgorithm] = {
    "RS256": hashes.SHA256(),
    "RS384": hashes.SHA384(),
    "RS512": hashes.SHA512(),
    "PS256": hashes.SHA256(),
}


def decode_token(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the header and the claims."""
    header, claims, _ = token.split(".")
    return json.loads(decode_part(header)), json.loads(decode_part(claims))


def decode_part(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def encode_part(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def build_claims(user_id: Any, **changes: Any) -> dict[str, Any]:
    """Returns the claims of a valid token with these changes; None leaves a claim out."""
    now = int(time.time())
    valid = {
        "iss": settings.PUBLIC_URL,
        "aud": f"{settings.PUBLIC_URL}/api",
        "sub": str(user_id),
        "client_id": "bookshop",
        "scope": "read write",
        "sid": str(uuid4()),
        "jti": uuid4().hex,
        "iat": now,
        "exp": now + 3600,
        "entitlements": sorted(PERMISSIONS),
    }
    return {name: value for name, value in {**valid, **changes}.items() if value is not None}


def forge_token(claims: Any, key: RSAKey | bytes | None = None, **changes: Any) -> str:
    """Returns a token with these claims and a valid header with these changes; None leaves a field out.

    Our own key signs it unless another is passed. A key of bytes signs with HS256.
    """
    own_key = jwks.get_keys().signing_key
    valid = {"alg": "RS256", "typ": "at+jwt", "kid": own_key.kid}
    header = {name: value for name, value in {**valid, **changes}.items() if value is not None}
    payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    text = f"{encode_part(json.dumps(header).encode())}.{encode_part(payload)}"
    return f"{text}.{encode_part(sign(text.encode(), key or own_key, header['alg']))}"


def sign(text: bytes, key: RSAKey | bytes, algorithm: str) -> bytes:
    if isinstance(key, bytes):
        return hmac.digest(key, text, sha256)
    assert key.private_key
    algorithm_hash = HASHES.get(algorithm, hashes.SHA256())
    scheme = padding.PSS(padding.MGF1(algorithm_hash), 32) if algorithm == "PS256" else padding.PKCS1v15()
    return key.private_key.sign(text, scheme, algorithm_hash)
