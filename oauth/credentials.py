"""The credential of a request, after it has been verified, and the error for one that is not valid."""

from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from rest_framework.exceptions import AuthenticationFailed

from oauth.scopes import NO_PERMISSIONS, PermissionSet, ScopeSet

# The address of the metadata of the resource PUBLIC_URL/api (RFC 9728, 3.1).
PROTECTED_RESOURCE_PATH = ".well-known/oauth-protected-resource/api"


class Credential(NamedTuple):
    """The scopes of a request, and the user that it acts for; `user_id` is None for an app that acts for nobody.

    `permissions` are those of the user in `oauth.scopes.PERMISSIONS`; an app that acts for nobody needs none.

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
    permissions: PermissionSet = NO_PERMISSIONS

    def __str__(self) -> str:
        return self.name


class InvalidCredential(AuthenticationFailed):
    """RFC 6750, 3.1."""

    default_detail = "The credential is not valid"

    @property
    def challenge(self) -> str:
        return build_challenge(error="invalid_token")


def build_challenge(**parameters: str) -> str:
    """The Bearer challenge (RFC 6750, 3) with the address of the resource's metadata (RFC 9728, 5.1)."""
    metadata = f"{settings.PUBLIC_URL}/{PROTECTED_RESOURCE_PATH}"
    fields = {"realm": "Library API", **parameters, "resource_metadata": metadata}
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in fields.items())


def sha256_hex(text: str) -> str:
    return sha256(text.encode()).hexdigest()
