"""The credential of a request, after it has been verified."""

from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from oauth.scopes import ScopeSet


class Credential(NamedTuple):
    """The scopes of a request, the id of its API key, and that of the authorization of an app or of an app's key.

    `name` and the text are the same for all requests of one API key, or of one app for one user.
    """

    name: str
    scopes: ScopeSet
    key: int | None = None
    authorization: UUID | None = None

    def __str__(self) -> str:
        return self.name


def sha256_hex(text: str) -> str:
    return sha256(text.encode()).hexdigest()
