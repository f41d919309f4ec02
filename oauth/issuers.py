"""Rows that a credential creates, such as API keys and endpoints, are revoked together with it."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils.module_loading import import_string

from oauth.credentials import Credential
from oauth.models import CONSENT_LIFETIME, APIKey, Authorization, build_active_condition


class IssuerRevoked(Exception):
    """The credential that creates a row is itself revoked."""


class Issuer(NamedTuple):
    """The columns for the credential that created a row and for its expiry; all null if a person created the row."""

    creator_id: int | None = None
    authorization_id: UUID | None = None
    expires_at: datetime | None = None


PERSON = Issuer()


def lock_issuer(credential: Credential | None, now: datetime) -> Issuer:
    """Returns the columns for a row that this credential creates; None means a person. Raises IssuerRevoked.

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
    raise IssuerRevoked


def build_issued_condition(credential: Credential) -> Q:
    """Returns the condition for the user's rows that a credential can see: an app sees the rows that it created.

    A key that a person created sees all rows of that person.
    """
    return Q(authorization=credential.authorization) if credential.authorization else Q()


def revoke_issued(made: Q) -> None:
    """Calls ACCESS_END_HANDLERS with a condition for the revoked rows, in the transaction of the revocation."""
    for name in settings.ACCESS_END_HANDLERS:
        import_string(name)(made)
