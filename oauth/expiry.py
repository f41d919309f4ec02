"""Lists expired credentials and records about them, for deletion."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from axes.models import AccessAttempt
from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef, Q, QuerySet
from oauth2_provider.models import AccessToken, Grant, RefreshToken
from oauth2_provider.settings import oauth2_settings

from oauth.models import CONSENT_LIFETIME, AccountMail, APIKey, Authorization, ChangedRights
from oauth.passwords import lockout
from oauth.tokens import revocations

# For how long the admin still shows ended keys to their owners.
KEY_RETENTION = timedelta(days=30)
# Longer than the retries of a mail, and than the period of the mail limit.
MAIL_RETENTION = timedelta(days=1)


def iter_expired(now: datetime) -> Iterator[tuple[str, QuerySet[Any]]]:
    """Yields a name and its queryset. Rows with a foreign key come before the rows that they refer to."""
    cutoff = now - revocations.RETENTION
    # Expired codes stay for a while, so that a late client still gets `code_expired`.
    yield "codes", Grant.objects.filter(expires__lte=cutoff)
    yield "refresh tokens", RefreshToken.objects.filter(build_unusable_condition(now))
    yield "access tokens", AccessToken.objects.filter(expires__lte=now, refresh_token=None)
    key_cutoff = now - KEY_RETENTION
    yield "API keys", APIKey.objects.filter(Q(revoked_at__lte=key_cutoff) | Q(expires_at__lte=key_cutoff))
    is_ended, is_lapsed = Q(ended_at__lte=cutoff), Q(created_at__lte=cutoff - CONSENT_LIFETIME)
    yield "authorizations", Authorization.objects.filter(is_ended | is_lapsed, apikey=None)
    yield "changed rights", ChangedRights.objects.filter(changed_at__lte=cutoff)
    yield "mails about passwords", AccountMail.objects.filter(created_at__lte=now - MAIL_RETENTION)
    yield "sessions", Session.objects.filter(expire_date__lte=now)
    yield "failed sign-ins", AccessAttempt.objects.filter(attempt_time__lte=now - lockout.COOLOFF)


def build_unusable_condition(now: datetime) -> Q:
    """Returns the condition for refresh tokens that can be deleted.

    A replaced token must stay: if a client sends it again, it was stolen, and its authorization must end.
    """
    idle_since = now - timedelta(seconds=oauth2_settings.REFRESH_TOKEN_EXPIRE_SECONDS)
    is_ended = ~Exists(Authorization.objects.active(now).filter(pk=OuterRef("token_family")))
    is_idle = Q(revoked__lte=idle_since) | Q(access_token__expires__lte=idle_since)
    return Q(is_ended) | is_idle | Q(revoked=None, access_token=None)
