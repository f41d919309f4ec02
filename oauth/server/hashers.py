"""The password hasher for generated client secrets."""

from hashlib import sha256
from typing import Any

from django.contrib.auth.hashers import BasePasswordHasher
from django.utils.crypto import constant_time_compare


class GeneratedSecretHasher(BasePasswordHasher):
    """One salted SHA-256. Nobody can guess 128 random characters, and every token request pays for the hash."""

    algorithm = "generated_secret"

    def encode(self, password: str, salt: str) -> str:
        return f"{self.algorithm}${salt}${sha256(f'{salt}{password}'.encode()).hexdigest()}"

    def decode(self, encoded: str) -> dict[str, Any]:
        algorithm, salt, digest = encoded.split("$")
        return {"algorithm": algorithm, "salt": salt, "hash": digest}

    def verify(self, password: str, encoded: str) -> bool:
        return constant_time_compare(encoded, self.encode(password, self.decode(encoded)["salt"]))

    def safe_summary(self, encoded: str) -> dict[Any, Any]:
        return {"algorithm": self.algorithm}

    def must_update(self, encoded: str) -> bool:
        return False

    def harden_runtime(self, password: str, encoded: str) -> None:
        """Does nothing: all hashes cost the same."""
