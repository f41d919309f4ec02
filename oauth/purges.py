"""Deletes credentials that are over, and what was kept about them."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from axes.models import AccessAttempt
from django.db.models import Exists, OuterRef, Q, QuerySet
from oauth2_provider.models import AccessToken, Grant, RefreshToken
from oauth2_provider.settings import oauth2_settings

from oauth import lockout
from oauth.models import CONSENT_LIFETIME, APIKey, Authorization, ChangedRights
from oauth.tokens import revocations

# Their owners may look for keys that are over.
KEY_RETENTION = timedelta(days=30)


def iter_expired(now: datetime) -> Iterator[tuple[str, QuerySet[Any]]]:
    """Each kind with its rows: what names others before what is named."""
    forgotten = now - revocations.RETENTION
    # A client that is late is told so for a while.
    yield "codes", Grant.objects.filter(expires__lte=forgotten)
    yield "refresh tokens", RefreshToken.objects.filter(unusable_refresh_tokens(now))
    yield "access tokens", AccessToken.objects.filter(expires__lte=now, refresh_token=None)
    over_since = now - KEY_RETENTION
    yield "API keys", APIKey.objects.filter(Q(revoked_at__lte=over_since) | Q(expires_at__lte=over_since))
    ended, lapsed = Q(ended_at__lte=forgotten), Q(created_at__lte=forgotten - CONSENT_LIFETIME)
    yield "authorizations", Authorization.objects.filter(ended | lapsed, apikey=None)
    yield "changed rights", ChangedRights.objects.filter(changed_at__lte=forgotten)
    yield "failed sign-ins", AccessAttempt.objects.filter(attempt_time__lte=now - lockout.COOLOFF)


def unusable_refresh_tokens(now: datetime) -> Q:
    """Refresh tokens that are good for nothing.

    One that was replaced is still good for something: who shows it again has stolen it, or was stolen from.
    """
    idle = now - timedelta(seconds=oauth2_settings.REFRESH_TOKEN_EXPIRE_SECONDS)
    ended = ~Exists(Authorization.objects.active(now).filter(pk=OuterRef("token_family")))
    return Q(ended) | Q(revoked__lte=idle) | Q(revoked=None, access_token=None) | Q(access_token__expires__lte=idle)
