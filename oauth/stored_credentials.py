"""Credentials of requests that a worker completes later. Their scopes are checked again at that time."""

from datetime import datetime
from typing import Any, NamedTuple

from oauth.credentials import Credential
from oauth.models import APIKey, Authorization, build_active_condition


class StoredCredential(NamedTuple):
    """The scope that a request needed, and the id of its API key, or of the authorization of its app."""

    scope: str
    key: int | None
    authorization: str

    def is_valid(self, now: datetime) -> bool:
        """Whether the key or authorization is still active and has the scope."""
        return any(self.scope in scopes.split() for scopes in self.find_scopes(now))

    def find_scopes(self, now: datetime) -> list[str]:
        """Returns the scopes of the key or the authorization; none if it is not active."""
        if self.key is not None:
            keys = APIKey.objects.filter(build_active_condition(now), pk=self.key)
            return list(keys.values_list("scopes", flat=True))
        authorizations = Authorization.objects.active(now).filter(pk=self.authorization)
        return list(authorizations.values_list("scopes", flat=True))


def describe_credential(credential: Credential, scope: str) -> dict[str, Any]:
    """Returns the fields of a StoredCredential for JSON."""
    return StoredCredential(scope, credential.key, str(credential.authorization))._asdict()
