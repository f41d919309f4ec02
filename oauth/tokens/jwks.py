"""The keys that sign access tokens: one private JWKS file (RFC 7517), of which the first key in use signs.

A key with `exp` (Unix seconds) has been replaced, and verifies until then; one with `prepared` verifies and waits.
"""

import fcntl
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from django.conf import settings
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

log = logging.getLogger(__name__)

KEY_BITS = 2048
PUBLIC_MEMBERS = ("kty", "n", "e", "kid", "use", "alg")


class NoSigningKey(Exception):
    """The file is not there, or has no key that may sign."""


class KeySet(NamedTuple):
    """What the file holds; `expires` has the Unix seconds of those that were replaced."""

    signing: RSAKey
    verifying: dict[str, RSAKey]
    expires: dict[str, int]

    def find(self, kid: Any, now: float) -> RSAKey | None:
        """The key that a token names, if it still verifies."""
        return None if kid in self.expires and self.expires[kid] <= now else self.verifying.get(kid)


class KeyFile:
    """The keys of a file, read again whenever it was replaced: a look at it costs microseconds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reading = Lock()
        self.seen: tuple[int, ...] = ()
        self.keys: KeySet | None = None

    def current(self) -> KeySet:
        """Raises NoSigningKey. A file that cannot be read leaves the keys as they were: a good token must not fail."""
        if (state := self.state()) != self.seen:
            with self.reading:
                if state != self.seen:
                    self.read(state)
        if self.keys is None:
            raise NoSigningKey(f"{self.path} has no signing key; `manage.py rotate_signing_key` makes one.")
        return self.keys

    def state(self) -> tuple[int, ...]:
        try:
            found = self.path.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_size

    def read(self, state: tuple[int, ...]) -> None:
        try:
            self.keys = parse_keys(json.loads(self.path.read_text())["keys"])
        except (OSError, ValueError, LookupError, TypeError, JoseError, NoSigningKey) as error:
            log.error("%s cannot be read: %s", self.path, type(error).__name__)  # noqa: TRY400  # no key in the log
        self.seen = state


def parse_keys(members: list[dict[str, Any]]) -> KeySet:
    """Raises NoSigningKey."""
    found = {member["kid"]: RSAKey.import_key(member) for member in members}
    signing = next((member["kid"] for member in members if not member.keys() & {"exp", "prepared"}), None)
    if signing is None:
        raise NoSigningKey
    return KeySet(found[signing], found, {member["kid"]: member["exp"] for member in members if "exp" in member})


KEY_FILE = KeyFile(settings.OAUTH_JWKS_FILE)
get_keys = KEY_FILE.current


def build_public_jwks(keys: KeySet, now: float) -> dict[str, Any]:
    """The JWKS that others verify by: the public part of each key that still verifies."""
    whole = [key.as_dict(private=False) for kid, key in keys.verifying.items() if keys.find(kid, now)]
    return {"keys": [{name: members[name] for name in PUBLIC_MEMBERS} for members in whole]}


def read_key_file(path: Path) -> list[dict[str, Any]]:
    members: list[dict[str, Any]] = json.loads(path.read_text())["keys"]
    return members


def rotate_key(path: Path, now: int, overlap: int) -> str:
    """Lets the prepared key sign, else a new one; replaced ones verify for `overlap` seconds. Answers its kid."""
    with edit_key_file(path) as members:
        signing = next((member for member in members if member.pop("prepared", False)), None) or generate_key(now)
        others = [member for member in members if member is not signing]
        for replaced in others:
            if "prepared" not in replaced:
                replaced.setdefault("exp", now + overlap)
        members[:] = [signing, *(one for one in others if one.get("exp", inf) > now)]
    return str(signing["kid"])


def prepare_key(path: Path, now: int) -> str:
    """Adds a key that verifies, and signs from the next rotation on. Answers its kid."""
    with edit_key_file(path) as members:
        members.append(generate_key(now) | {"prepared": True})
    return str(members[-1]["kid"])


def generate_key(now: int) -> dict[str, Any]:
    made = RSAKey.generate_key(KEY_BITS, {"use": "sig", "alg": "RS256"}, auto_kid=True).as_dict(private=True)
    return {**made, "iat": now}


@contextmanager
def edit_key_file(path: Path) -> Iterator[list[dict[str, Any]]]:
    """The file's keys, written back whole when the block ends: whoever reads meanwhile reads the old ones."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock_file(path.with_name(f"{path.name}.lock")):
        members = read_key_file(path) if path.exists() else []
        yield members
        whole = path.with_name(f"{path.name}.new")
        whole.unlink(missing_ok=True)
        with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({"keys": members}, file)
            file.flush()
            os.fsync(file.fileno())
        whole.replace(path)


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Two rotations at once would lose a key."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
