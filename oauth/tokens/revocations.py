"""The list of ended authorizations and of users with changed permissions: an access token cannot contain these.

Each process caches the short list in memory, and reads it again before it is five seconds old.
"""

import time
from collections.abc import Collection
from datetime import datetime, timedelta
from math import inf
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from oauth2_provider.settings import oauth2_settings

from oauth import api_keys, scopes
from oauth.issuers import revoke_issued
from oauth.models import APIKey, Authorization, ChangedRights
from oauth.scopes import ScopeSet

# The list is used for this many seconds. The rest of the five seconds is for reading it.
MAX_AGE_SECONDS = 4
# After this time all older access tokens have expired, even if the clocks of machines differ.
RETENTION = timedelta(seconds=oauth2_settings.ACCESS_TOKEN_EXPIRE_SECONDS) + timedelta(minutes=5)


class Revocations(NamedTuple):
    """The ids of ended authorizations, and the current scopes of users with changed permissions."""

    ended_ids: Collection[UUID]
    rights: dict[int, ScopeSet]

    def get_remaining_scopes(self, sid: UUID, user_id: int | None, token_scopes: ScopeSet) -> ScopeSet | None:
        """Returns the remaining scopes of a token; None if it is revoked or its user has no permissions any more."""
        rights = token_scopes if user_id is None else self.rights.get(user_id, token_scopes)
        return token_scopes & rights if rights and sid not in self.ended_ids else None


class RevocationList:
    def __init__(self) -> None:
        self.lock = Lock()
        self.revocations = Revocations((), {})
        self.read_at = -inf

    def get_revocations(self) -> Revocations:
        """Returns the list. Raises the database's exceptions: without the list no token can be trusted."""
        if time.monotonic() - self.read_at > MAX_AGE_SECONDS:
            with self.lock:
                if time.monotonic() - self.read_at > MAX_AGE_SECONDS:
                    started_at = time.monotonic()
                    self.revocations = load_revocations(timezone.now())
                    self.read_at = started_at
        return self.revocations

    def invalidate(self) -> None:
        """Makes the next caller reread the list. Waits for a read in progress, because its result may be outdated."""
        with self.lock:
            self.read_at = -inf


REVOCATION_LIST = RevocationList()
get_revocations = REVOCATION_LIST.get_revocations


def load_revocations(now: datetime) -> Revocations:
    ended_ids = Authorization.objects.filter(ended_at__gt=now - RETENTION).values_list("pk", flat=True)
    changed_rights = ChangedRights.objects.filter(changed_at__gt=now - RETENTION).values_list("pk", "scopes")
    return Revocations(
        frozenset(ended_ids), {user_id: frozenset(scope_text.split()) for user_id, scope_text in changed_rights}
    )


def revoke_authorizations(authorizations: QuerySet[Authorization], now: datetime) -> int:
    """Ends authorizations with their tokens and the rows that they created. Returns the number of authorizations."""
    active = authorizations.filter(ended_at=None)
    with transaction.atomic():
        # This comes first: it waits for transactions that create rows with these authorizations (`lock_issuer`).
        ids = list(active.order_by("pk").select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True))
        Authorization.objects.filter(pk__in=ids).update(ended_at=now)
        api_keys.revoke_keys(APIKey.objects.filter(authorization__in=ids), now)
        revoke_issued(Q(authorization__in=ids))
        transaction.on_commit(REVOCATION_LIST.invalidate)
    return len(ids)


def record_changed_rights(users: QuerySet[User], now: datetime) -> None:
    """Limits all tokens of these users to the users' current scopes."""
    with transaction.atomic():
        # Locked, so that the second of two concurrent changes sees the first.
        user_ids = list(users.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
        scopes_by_user = scopes.get_allowed_scopes(User.objects.filter(pk__in=user_ids))
        rows = [ChangedRights(pk, scopes.format_scopes(user_scopes), now) for pk, user_scopes in scopes_by_user.items()]
        ChangedRights.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["user_id"], update_fields=["scopes", "changed_at"]
        )
        transaction.on_commit(REVOCATION_LIST.invalidate)
