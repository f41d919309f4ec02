"""Reads and rotates the keys that sign access tokens. They are in one private JWKS file (RFC 7517).

A key with `exp` (Unix seconds) is replaced, and verifies until that time. A key with `prepared` only verifies, until
the next rotation. The first of the other keys signs.
"""

import fcntl
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from django.conf import settings
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from library_site.private_files import replace_private

log = logging.getLogger(__name__)

KEY_BITS = 2048
PUBLIC_FIELDS = ("kty", "n", "e", "kid", "use", "alg")


class NoSigningKey(Exception):
    """The file does not exist, cannot be read, or has no key that signs."""


class CacheableKey(RSAKey):
    """A key that is hashable, for cached functions. Rereading the file creates new keys."""

    def __hash__(self) -> int:
        return id(self)


class KeySet(NamedTuple):
    """The keys of the file by kid; `expires` has the expiry of replaced keys in Unix seconds."""

    signing_key: CacheableKey
    keys_by_kid: dict[str, CacheableKey]
    expires: dict[str, int]

    def find(self, kid: Any, now: float) -> CacheableKey | None:
        """Returns the key with this kid if it can still verify, else None."""
        return None if kid in self.expires and self.expires[kid] <= now else self.keys_by_kid.get(kid)


class KeyFile:
    """The keys of a file. The file is reread when it has changed; the check costs microseconds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = Lock()
        self.file_state: tuple[int, ...] = ()
        self.keys: KeySet | None = None

    def get_keys(self) -> KeySet:
        """Returns the keys of the file. Raises NoSigningKey.

        If the file cannot be read, the old keys stay in use, so that valid tokens do not fail.
        """
        if (state := self.stat_file()) != self.file_state:
            with self.lock:
                if state != self.file_state:
                    self.read_keys(state)
        if self.keys is None:
            raise NoSigningKey(describe_missing_key(self.path))
        return self.keys

    def stat_file(self) -> tuple[int, ...]:
        try:
            status = self.path.stat()
        except OSError:
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_size

    def read_keys(self, state: tuple[int, ...]) -> None:
        try:
            self.keys = parse_keys(json.loads(self.path.read_text())["keys"])
        except (OSError, ValueError, LookupError, TypeError, JoseError, NoSigningKey) as error:
            log.error("%s cannot be read: %s", self.path, type(error).__name__)  # noqa: TRY400  # no key in the log
        self.file_state = state


def describe_missing_key(path: Path) -> str:
    """Distinguishes a missing file from an unreadable one: replacing an unreadable key would invalidate all tokens."""
    if path.exists() and not os.access(path, os.R_OK):
        return f"{path} cannot be read by the user with the id {os.geteuid()}; the library's user must own it."
    return f"{path} has no signing key; `manage.py rotate_signing_key` makes one."


def parse_keys(jwks: list[dict[str, Any]]) -> KeySet:
    """Raises NoSigningKey."""
    keys = {jwk["kid"]: CacheableKey.import_key(jwk) for jwk in jwks}
    signing_kid = next((jwk["kid"] for jwk in jwks if not jwk.keys() & {"exp", "prepared"}), None)
    if signing_kid is None:
        raise NoSigningKey
    return KeySet(keys[signing_kid], keys, {jwk["kid"]: jwk["exp"] for jwk in jwks if "exp" in jwk})


@cache
def get_key_file() -> KeyFile:
    return KeyFile(settings.OAUTH_JWKS_FILE)


def get_keys() -> KeySet:
    """Raises NoSigningKey."""
    return get_key_file().get_keys()


def build_public_jwks(keys: KeySet, now: float) -> dict[str, Any]:
    """Returns the public JWKS: the public part of each key that still verifies."""
    public_keys = [key.as_dict(private=False) for kid, key in keys.keys_by_kid.items() if keys.find(kid, now)]
    return {"keys": [{name: jwk[name] for name in PUBLIC_FIELDS} for jwk in public_keys]}


def rotate_key(path: Path, now: int, overlap: int) -> str:
    """Makes the prepared key or a new key sign. Old keys verify for `overlap` seconds. Returns the new kid."""
    with edit_key_file(path) as jwks:
        signing_key = next((jwk for jwk in jwks if jwk.pop("prepared", False)), None) or generate_key(now)
        others = [jwk for jwk in jwks if jwk is not signing_key]
        for old_key in others:
            if "prepared" not in old_key:
                old_key.setdefault("exp", now + overlap)
        jwks[:] = [signing_key, *(jwk for jwk in others if jwk.get("exp", inf) > now)]
    return str(signing_key["kid"])


def prepare_key(path: Path, now: int) -> str:
    """Adds a key that only verifies until the next rotation, and then signs. Returns its kid."""
    with edit_key_file(path) as jwks:
        jwks.append(generate_key(now) | {"prepared": True})
    return str(jwks[-1]["kid"])


def generate_key(now: int) -> dict[str, Any]:
    jwk = RSAKey.generate_key(KEY_BITS, {"use": "sig", "alg": "RS256"}, auto_kid=True).as_dict(private=True)
    return {**jwk, "iat": now}


@contextmanager
def edit_key_file(path: Path) -> Iterator[list[dict[str, Any]]]:
    """Yields the file's keys, and replaces the file at the end of the block. Until then readers see the old keys."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(f"{path}.lock", os.O_WRONLY | os.O_CREAT, 0o600)) as lock:
        # Without the lock, two concurrent rotations would lose a key.
        fcntl.flock(lock, fcntl.LOCK_EX)
        jwks = json.loads(path.read_text())["keys"] if path.exists() else []
        yield jwks
        replace_private(path, json.dumps({"keys": jwks}).encode())
