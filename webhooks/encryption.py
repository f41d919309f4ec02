"""Generates signing secrets and encrypts them for the database."""

import secrets
from base64 import b64encode

from library_site import encryption
from webhooks.signing import MIN_KEY_BYTES, SECRET_PREFIX, is_usable_secret

# Secrets that a user chooses.
SECRET_PATTERN = r"[ -~]{24,200}"  # noqa: S105  # no secret
SECRET_RULE = "24 to 200 printable ASCII characters"  # noqa: S105  # no secret

# Secrets of form C, as `signing.decode_key` checks.
BASE64_SECRET_RULE = f"{SECRET_PREFIX} and the standard base64 of at least {MIN_KEY_BYTES} bytes"

PURPOSE = "webhooks"
# A multiple of three: its base64 has no padding, which people forget to copy.
KEY_BYTES = 36


def generate_secret() -> str:
    """Returns a secret that works with each form."""
    return SECRET_PREFIX + b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def encrypt_secret(secret: str) -> str:
    return encryption.encrypt(secret, PURPOSE)


def decrypt_secret(encrypted_secret: str) -> str:
    """Raises `library_site.encryption.DecryptionError`."""
    return encryption.decrypt(encrypted_secret, PURPOSE)


def can_sign(form: str, encrypted_secret: str) -> bool:
    try:
        return is_usable_secret(form, decrypt_secret(encrypted_secret))
    except encryption.DecryptionError:
        return False
