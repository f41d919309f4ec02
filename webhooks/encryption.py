"""Signing secrets: how they are made, and how they lie in the database, where a copy of it gives none away."""

import secrets
from base64 import urlsafe_b64encode
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes

# Secrets that were made elsewhere.
GIVEN = r"[ -~]{24,200}"
GIVEN_WORDS = "24 to 200 printable ASCII characters"


class SealBroken(Exception):
    """No key of today opens it: SECRET_KEY was changed without a fallback, or the text was."""


def new_secret() -> str:
    return f"whsec_{secrets.token_urlsafe(32)}"


def seal(secret: str) -> str:
    """ASCII text that only SECRET_KEY opens."""
    return keys().encrypt(secret.encode()).decode()


def unseal(sealed: str) -> str:
    """Also what was sealed under one of SECRET_KEY_FALLBACKS. Raises SealBroken."""
    try:
        return keys().decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise SealBroken from error


def keys() -> MultiFernet:
    return keys_from(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


@lru_cache(maxsize=1)
def keys_from(*secret_keys: str | bytes) -> MultiFernet:
    return MultiFernet([Fernet(urlsafe_b64encode(derived(force_bytes(key)))) for key in secret_keys])


def derived(secret_key: bytes) -> bytes:
    """A key for this purpose alone (RFC 5869): what Django signs with SECRET_KEY says nothing of it."""
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=b"webhooks").derive(secret_key)
