"""Generates signing secrets and encrypts them for the database."""

import secrets

from library_site import encryption

# Secrets that a user brings.
SECRET_PATTERN = r"[ -~]{24,200}"  # noqa: S105  # no secret
SECRET_RULE = "24 to 200 printable ASCII characters"  # noqa: S105  # no secret

PURPOSE = "webhooks"


def generate_secret() -> str:
    return f"whsec_{secrets.token_urlsafe(32)}"


def encrypt(secret: str) -> str:
    return encryption.encrypt(secret, PURPOSE)


def decrypt(encrypted_secret: str) -> str:
    """Raises `library_site.encryption.DecryptionError`."""
    return encryption.decrypt(encrypted_secret, PURPOSE)
