"""API keys: made, found and revoked. A key is `lib_`, a prefix to find it by, and 256 bits of chance."""

import re
import secrets
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q, QuerySet

from library_site.http.refusals import Refusal
from oauth import scopes
from oauth.credentials import Credential, sha256_hex
from oauth.models import CONSENT_LIFETIME, APIKey, Authorization
from oauth.scopes import ScopeSet

KEY_PATTERN = re.compile(r"lib_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
# How many a person may have that are neither revoked nor expired.
MAX_KEYS_PER_USER = 100
# How exactly `last_used_at` is kept.
LAST_USED_PRECISION = timedelta(minutes=1)
KEY_COLUMNS = ("pk", "digest", "scopes", "last_used_at")


class InvalidKey(Exception):
    """No key of ours, or one that is over."""


class TooManyKeys(Refusal):
    """The owner has MAX_KEYS_PER_USER keys."""

    status = 409
    message = f"You have {MAX_KEYS_PER_USER} API keys: revoke one first"


class MakerRevoked(Exception):
    """The credential that makes the key was revoked meanwhile."""


class ActiveKey(NamedTuple):
    """A key that is good now, with what it is good for."""

    pk: int
    owner_id: int
    scopes: ScopeSet
    last_used_at: datetime | None


def create_key(
    owner: User,
    name: str,
    granted: ScopeSet,
    now: datetime,
    expires_at: datetime | None = None,
    maker: Credential | None = None,
) -> tuple[APIKey, str]:
    """A new key and its text, which is nowhere kept. Raises TooManyKeys, MakerGone.

    It does not outlive the credential that it is made by.
    """
    prefix = secrets.token_hex(6)
    text = f"lib_{prefix}_{secrets.token_urlsafe(32)}"
    with transaction.atomic():
        # Makers at the same time would each count too few.
        User.objects.select_for_update().get(pk=owner.pk)
        if active_keys(now).filter(owner=owner).count() >= MAX_KEYS_PER_USER:
            raise TooManyKeys
        ends = [expires_at, maker and get_maker_expiry(maker, now)]
        key = APIKey.objects.create(
            name=name,
            owner=owner,
            prefix=prefix,
            digest=sha256_hex(text),
            scopes=scopes.format_scopes(granted),
            created_at=now,
            expires_at=min((end for end in ends if end), default=None),
            maker_id=maker and maker.key,
            authorization_id=maker and maker.authorization,
        )
    return key, text


def get_maker_expiry(maker: Credential, now: datetime) -> datetime | None:
    """When a credential ends by itself. Holds it, lest it be revoked before its key is there. Raises MakerGone."""
    if maker.key is not None:
        if key := active_keys(now).select_for_update().filter(pk=maker.key).first():
            return key.expires_at
    elif maker.authorization is not None:
        granted = Authorization.objects.select_for_update().filter(pk=maker.authorization, ended_at=None).first()
        if granted:
            return granted.created_at + CONSENT_LIFETIME
    raise MakerRevoked


def active_keys(now: datetime) -> QuerySet[APIKey]:
    """Keys that are neither revoked nor expired."""
    return APIKey.objects.filter(active_condition(now))


def active_condition(now: datetime, path: str = "") -> Q:
    """The same as a condition; `path` leads to the keys."""
    lasts = Q((f"{path}expires_at", None)) | Q((f"{path}expires_at__gt", now))
    return lasts & Q((f"{path}revoked_at", None))


def find_key(text: str, now: datetime) -> ActiveKey:
    """The key with this text, in one query. Raises InvalidKey."""
    matched = KEY_PATTERN.fullmatch(text)
    if not matched:
        raise InvalidKey
    owners = scopes.annotate_scopes(
        User.objects.filter(active_condition(now, "api_keys__"), api_keys__prefix=matched[1])
    )
    columns = {f"key_{name}": F(f"api_keys__{name}") for name in KEY_COLUMNS}
    found = owners.values("pk", "is_active", *scopes.scope_permissions(), **columns).first()
    if not found or not compare_digest(found["key_digest"], sha256_hex(text)):
        raise InvalidKey
    if not found["is_active"]:
        raise InvalidKey
    left = frozenset(found["key_scopes"].split()) & scopes.read_scopes(found)
    return ActiveKey(found["key_pk"], found["pk"], left, found["key_last_used_at"])


def record_use(key: ActiveKey, now: datetime) -> None:
    """Once a minute at the most."""
    if key.last_used_at is None or key.last_used_at < now - LAST_USED_PRECISION:
        seen_before = Q(last_used_at=None) | Q(last_used_at__lt=now - LAST_USED_PRECISION)
        APIKey.objects.filter(seen_before, pk=key.pk).update(last_used_at=now)


def revoke_keys(keys: QuerySet[APIKey], now: datetime) -> int:
    """At once, with those that were made by them; tells how many."""
    revoked = 0
    with transaction.atomic():
        ids = list(keys.select_for_update().values_list("pk", flat=True))
        while ids:
            revoked += APIKey.objects.filter(pk__in=ids, revoked_at=None).update(revoked_at=now)
            ids = list(APIKey.objects.filter(maker__in=ids).select_for_update().values_list("pk", flat=True))
    return revoked
