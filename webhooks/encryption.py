"""Generates signing secrets and encrypts them: a copy of the database reveals none of them."""

import secrets
from base64 import urlsafe_b64encode
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes

# Secrets that a user brings.
SECRET_PATTERN = r"[ -~]{24,200}"  # noqa: S105  # no secret
SECRET_RULE = "24 to 200 printable ASCII characters"  # noqa: S105  # no secret


class DecryptionError(Exception):
    """No current key decrypts the secret: SECRET_KEY was changed without a fallback, or the text was changed."""


def generate_secret() -> str:
    return f"whsec_{secrets.token_urlsafe(32)}"


def encrypt(secret: str) -> str:
    """ASCII text that only SECRET_KEY decrypts."""
    return get_cipher().encrypt(secret.encode()).decode()


def decrypt(encrypted_secret: str) -> str:
    """Also decrypts with each of SECRET_KEY_FALLBACKS. Raises DecryptionError."""
    try:
        return get_cipher().decrypt(encrypted_secret.encode()).decode()
    except InvalidToken as error:
        raise DecryptionError from error


def get_cipher() -> MultiFernet:
    return make_cipher(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


@lru_cache(maxsize=1)
def make_cipher(*secret_keys: str | bytes) -> MultiFernet:
    return MultiFernet([Fernet(urlsafe_b64encode(derive_key(force_bytes(key)))) for key in secret_keys])


def derive_key(secret_key: bytes) -> bytes:
    """A key for this purpose alone (RFC 5869): what Django signs with SECRET_KEY reveals nothing about it."""
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=b"webhooks").derive(secret_key)
