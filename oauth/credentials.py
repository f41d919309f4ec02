"""The credential of a request, after it has been verified."""

from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from oauth.scopes import ScopeSet


class Credential(NamedTuple):
    """The scopes of a request, and the user that it acts for; `user_id` is None for an app that acts for nobody.

    `key` is the id of the API key, `authorization` the id of the authorization of the app or of the app that created
    the key, and `client_id` the client id of the app. `name` and `str()` are the same for all requests of one API key,
    or of one app for one user.
    """

    name: str
    scopes: ScopeSet
    user_id: int | None
    key: int | None = None
    authorization: UUID | None = None
    client_id: str | None = None

    def __str__(self) -> str:
        return self.name


def sha256_hex(text: str) -> str:
    return sha256(text.encode()).hexdigest()
