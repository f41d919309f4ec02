"""The credential of a request, after it has been verified."""

from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from oauth.scopes import ScopeSet


class Credential(NamedTuple):
    """What a request may do, and in whose name.

    `user_id` is the user for whom it acts, `key` the id of an API key, `authorization` that of an app or of an app's
    key, and `client_id` that of an app. `name` and the text are the same for all requests of one API key, or of one
    app for one user.
    """

    name: str
    scopes: ScopeSet
    user_id: int
    key: int | None = None
    authorization: UUID | None = None
    client_id: str | None = None

    def __str__(self) -> str:
        return self.name


def sha256_hex(text: str) -> str:
    return sha256(text.encode()).hexdigest()
