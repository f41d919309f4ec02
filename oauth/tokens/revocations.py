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
from oauth.scopes import PERMISSIONS, Rights
from oauth.tokens.access_tokens import Claims

# The list is used for this many seconds. The rest of the five seconds is for reading it.
MAX_AGE_SECONDS = 4
# After this time all older access tokens have expired, even if the clocks of machines differ.
RETENTION = timedelta(seconds=oauth2_settings.ACCESS_TOKEN_EXPIRE_SECONDS) + timedelta(minutes=5)


class Revocations(NamedTuple):
    """The ids of ended authorizations, and the current rights of users with changed permissions."""

    ended_ids: Collection[UUID]
    rights: dict[int, Rights]

    def find_remaining_rights(self, claims: Claims) -> Rights | None:
        """Returns the remaining rights of a token; None if it is revoked or its user has no scope any more."""
        if claims.sid in self.ended_ids:
            return None
        user_id = claims.user_id
        limit = None if user_id is None else self.rights.get(user_id)
        return limit_rights(claims.rights, limit) if limit else claims.rights


def limit_rights(rights: Rights, limit: Rights) -> Rights | None:
    return Rights(rights.scopes & limit.scopes, rights.permissions & limit.permissions) if limit.scopes else None


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
    rows = ChangedRights.objects.filter(changed_at__gt=now - RETENTION).values_list("pk", "scopes", "permissions")
    rights = {
        user_id: Rights(frozenset(scope_text.split()), PERMISSIONS if names is None else frozenset(names))
        for user_id, scope_text, names in rows
    }
    return Revocations(frozenset(ended_ids), rights)


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
    """Limits all tokens of these users to the users' current rights."""
    with transaction.atomic():
        # Locked, so that the second of two concurrent changes sees the first.
        user_ids = list(users.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
        rows = [
            ChangedRights(pk, scopes.format_scopes(rights.scopes), now, sorted(rights.permissions))
            for pk, rights in scopes.get_rights(User.objects.filter(pk__in=user_ids)).items()
        ]
        updated = ["scopes", "changed_at", "permissions"]
        ChangedRights.objects.bulk_create(rows, update_conflicts=True, unique_fields=["user_id"], update_fields=updated)
        transaction.on_commit(REVOCATION_LIST.invalidate)
