"""The password hashers: for passwords of users, and for generated client secrets."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from threading import BoundedSemaphore
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import BasePasswordHasher, PBKDF2PasswordHasher
from django.utils.crypto import constant_time_compare

from library_site.http.api_errors import APIError

# More concurrent hashes would not finish sooner: each keeps a processor busy for half a second.
MAX_HASHES = 2
# The longest wait for a turn, in seconds.
MAX_WAIT_SECONDS = 2.0


class HashingBusy(APIError):
    """Too many passwords are being hashed. This says nothing about the password."""

    status_code = 503
    default_detail = "Too many people sign in at this moment, try again in a few seconds"
    headers = {"Retry-After": "5"}


class HashLimiter:
    """Lets a few threads hash, lets some more wait for a limited time, and rejects all others at once."""

    def __init__(self, max_hashing: int, max_threads: int, max_wait: float) -> None:
        self.hashing = BoundedSemaphore(max_hashing)
        self.threads = BoundedSemaphore(max_threads)
        self.max_wait = max_wait

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Raises HashingBusy."""
        if not self.threads.acquire(blocking=False):
            raise HashingBusy
        try:
            if not self.hashing.acquire(timeout=self.max_wait):
                raise HashingBusy
            try:
                yield
            finally:
                self.hashing.release()
        finally:
            self.threads.release()


# At most half of the threads of a process hash or wait, so the others can handle requests.
HASH_LIMITER = HashLimiter(MAX_HASHES, max(1, settings.WEB_THREADS // 2), MAX_WAIT_SECONDS)


class BoundedPBKDF2Hasher(PBKDF2PasswordHasher):
    """Django's hasher with a limit on concurrent hashes: one hash costs as much as a thousand requests."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Raises HashingBusy."""
        with HASH_LIMITER.slot():
            return super().encode(password, salt, iterations)


class GeneratedSecretHasher(BasePasswordHasher):
    """One salted SHA-256. A secret of 128 random characters cannot be guessed, and every token request checks it."""

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
        """Does nothing: the work factor is constant."""
