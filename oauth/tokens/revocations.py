"""What access tokens do not know of themselves: which authorizations have ended, and whose rights have changed.

Each process holds the short list in memory and reads it again before it is five seconds old.
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
from django.db.models import QuerySet
from django.utils import timezone
from oauth2_provider.settings import oauth2_settings

from oauth import api_keys, scopes
from oauth.models import APIKey, Authorization, ChangedRights
from oauth.scopes import ScopeSet

# Seconds for which the list may be used: what is left of the five is for reading it.
MAX_AGE_SECONDS = 4
# After it nobody holds an access token from before, whatever the clocks of machines say.
RETENTION = timedelta(seconds=oauth2_settings.ACCESS_TOKEN_EXPIRE_SECONDS) + timedelta(minutes=5)


class Revocations(NamedTuple):
    """The ids of authorizations that have ended, and what users have now whose rights changed."""

    ended: Collection[UUID]
    rights: dict[int, ScopeSet]

    def get_remaining_scopes(self, sid: UUID, user_id: int, granted: ScopeSet) -> ScopeSet | None:
        """What is left of what a token was granted; None where it is revoked, or its person may nothing any more."""
        rights = self.rights.get(user_id, granted)
        return granted & rights if rights and sid not in self.ended else None


class RevocationList:
    """A process's list."""

    def __init__(self) -> None:
        self.reading = Lock()
        self.found = Revocations((), {})
        self.read_at = -inf

    def current(self) -> Revocations:
        """Raises what the database does: without the list no token can be trusted."""
        if time.monotonic() - self.read_at > MAX_AGE_SECONDS:
            with self.reading:
                if time.monotonic() - self.read_at > MAX_AGE_SECONDS:
                    begun = time.monotonic()
                    self.found = load_revocations(timezone.now())
                    self.read_at = begun
        return self.found

    def invalidate(self) -> None:
        """Not while it is being read: what is read then may be from before."""
        with self.reading:
            self.read_at = -inf


REVOCATION_LIST = RevocationList()
get_revocations = REVOCATION_LIST.current


def load_revocations(now: datetime) -> Revocations:
    """The list as it is in the database."""
    ended = Authorization.objects.filter(ended_at__gt=now - RETENTION).values_list("pk", flat=True)
    changed = ChangedRights.objects.filter(changed_at__gt=now - RETENTION).values_list("pk", "scopes")
    return Revocations(frozenset(ended), {user_id: frozenset(words.split()) for user_id, words in changed})


def revoke_authorizations(authorizations: QuerySet[Authorization], now: datetime) -> int:
    """Ends them with all their tokens, and the API keys made by them; tells how many."""
    with transaction.atomic():
        # First: a key that is being made by one of them holds it until it is there.
        ended = authorizations.filter(ended_at=None).update(ended_at=now)
        api_keys.revoke_keys(APIKey.objects.filter(authorization__in=authorizations.filter(ended_at=now)), now)
        transaction.on_commit(REVOCATION_LIST.invalidate)
    return ended


def record_changed_rights(users: QuerySet[User], now: datetime) -> None:
    """Lets no token of these users do more than they may do now."""
    with transaction.atomic():
        # Held: of two changes at once, the later must see the earlier.
        held = list(users.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
        allowed = scopes.get_allowed_scopes(User.objects.filter(pk__in=held))
        rows = [ChangedRights(pk, scopes.format_scopes(granted), now) for pk, granted in allowed.items()]
        ChangedRights.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["user_id"], update_fields=["scopes", "changed_at"]
        )
        transaction.on_commit(REVOCATION_LIST.invalidate)
