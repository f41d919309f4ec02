"""Rows that a credential creates, such as API keys and endpoints, are revoked together with it.

A worker that completes a request later checks the credential of the request again.
"""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils.module_loading import import_string

from oauth.credentials import Credential, InvalidCredential
from oauth.models import CONSENT_LIFETIME, APIKey, Authorization, build_active_condition


class Issuer(NamedTuple):
    """The columns for the credential that created a row and for its expiry; all null if a person created the row."""

    creator_id: int | None = None
    authorization_id: UUID | None = None
    expires_at: datetime | None = None


PERSON = Issuer()


def lock_issuer(credential: Credential | None, now: datetime) -> Issuer:
    """Returns the columns for a row that this credential creates; None means a person. Raises InvalidCredential
    if the credential was revoked: a process may notice a revocation five seconds late.

    The credential stays locked until the transaction ends, so a revocation finds every row that it created. Take this
    lock first: a revocation locks authorization, keys, rows and user in this order. Without `no_key`, the foreign keys
    of a new row could deadlock with a revocation.
    """
    if credential is None:
        return PERSON
    if credential.key is not None:
        keys = APIKey.objects.filter(build_active_condition(now), pk=credential.key)
        if key := keys.select_for_update(no_key=True).first():
            return Issuer(key.pk, key.authorization_id, key.expires_at)
    elif credential.authorization is not None:
        authorizations = Authorization.objects.active(now).filter(pk=credential.authorization)
        if authorization := authorizations.select_for_update(no_key=True).first():
            return Issuer(None, authorization.pk, authorization.created_at + CONSENT_LIFETIME)
    raise InvalidCredential


def build_issued_condition(credential: Credential) -> Q:
    """Returns the condition for the user's rows that a credential can see: an app sees the rows that it created.

    A key that a person created sees all rows of that person.
    """
    return Q(authorization=credential.authorization) if credential.authorization else Q()


def revoke_issued(issued: Q) -> None:
    """Calls ACCESS_END_HANDLERS with a condition for the revoked rows, in the transaction of the revocation."""
    for name in settings.ACCESS_END_HANDLERS:
        import_string(name)(issued)


def describe_credential(credential: Credential, scope: str) -> dict[str, Any]:
    """Returns JSON for `is_still_valid`: the scope that a request needed, and its API key, or the app's access."""
    return {"scope": scope, "key": credential.key, "authorization": str(credential.authorization)}


def is_still_valid(scope: str, key: int | None, authorization: str, now: datetime) -> bool:
    """Whether the key or authorization of a request is still active and has the scope."""
    active: QuerySet[APIKey] | QuerySet[Authorization] = (
        Authorization.objects.active(now).filter(pk=authorization)
        if key is None
        else APIKey.objects.filter(build_active_condition(now), pk=key)
    )
    return any(scope in scopes.split() for scopes in active.values_list("scopes", flat=True))
