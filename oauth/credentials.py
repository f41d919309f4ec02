"""What a request shows, once it has been checked."""

from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from oauth.scopes import ScopeSet


class Credential(NamedTuple):
    """What it may do, and by which API key or authorization; its text is the same as long as one speaks for one."""

    name: str
    scopes: ScopeSet
    key: int | None = None
    authorization: UUID | None = None

    def __str__(self) -> str:
        return self.name


def sha256_hex(text: str) -> str:
    return sha256(text.encode()).hexdigest()
