"""What a credential makes, such as API keys and endpoints, belongs to it and ends with it."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils.module_loading import import_string

from oauth.credentials import Credential
from oauth.models import CONSENT_LIFETIME, APIKey, Authorization, build_active_condition


class IssuerRevoked(Exception):
    """The access of the credential that makes something has ended."""


class Issuer(NamedTuple):
    """The columns of a row that say what made it, and when it ends at the latest. A row of a person has none."""

    creator_id: int | None = None
    authorization_id: UUID | None = None
    expires_at: datetime | None = None


PERSON = Issuer()


def lock_issuer(credential: Credential | None, now: datetime) -> Issuer:
    """Returns the columns of what this credential makes; None stands for a person. Raises IssuerRevoked.

    The credential's access cannot end before the transaction does: so an end finds all rows that were made before it.
    Lock it first: an end locks in the order authorization, keys, rows, user. Without `no_key`, the foreign keys of a
    new row could wait for an end that waits for the row.
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
    """Returns the condition for the rows of its user that a credential sees: an app sees those that it made.

    A person's own key sees all of them, like the person.
    """
    return Q(authorization=credential.authorization) if credential.authorization else Q()


def revoke_issued(made: Q) -> None:
    """Calls the handlers of ACCESS_END_HANDLERS, in the transaction that ends access, with a condition for its rows."""
    for name in settings.ACCESS_END_HANDLERS:
        import_string(name)(made)
