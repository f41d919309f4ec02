"""Encrypts secrets for the database, so that a copy of the database does not reveal them."""

from base64 import urlsafe_b64encode
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes


class DecryptionError(Exception):
    """No current key decrypts the secret: SECRET_KEY was changed without a fallback, or the text was changed."""


def encrypt(secret: str, purpose: str) -> str:
    """Returns ASCII text, which can be decrypted only with SECRET_KEY and for the same purpose."""
    return get_cipher(purpose).encrypt(secret.encode()).decode()


def decrypt(encrypted_secret: str, purpose: str) -> str:
    """Decrypts with SECRET_KEY or one of SECRET_KEY_FALLBACKS. Raises DecryptionError."""
    try:
        return get_cipher(purpose).decrypt(encrypted_secret.encode()).decode()
    except InvalidToken as error:
        raise DecryptionError from error


def get_cipher(purpose: str) -> MultiFernet:
    return build_cipher(purpose, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


@lru_cache(maxsize=8)
def build_cipher(purpose: str, *secret_keys: str | bytes) -> MultiFernet:
    return MultiFernet([Fernet(urlsafe_b64encode(derive_key(force_bytes(key), purpose))) for key in secret_keys])


def derive_key(secret_key: bytes, purpose: str) -> bytes:
    """Returns a key for this purpose only (RFC 5869). Django's signatures with SECRET_KEY reveal nothing about it."""
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose.encode()).derive(secret_key)
