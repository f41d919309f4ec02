"""Creates, finds and revokes API keys. A key consists of `lib_`, a prefix that identifies it, and 256 random bits."""

import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from hmac import compare_digest
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, F, Q, QuerySet

from library_site.db.sql import CompiledQuery, Parameter, PreparedStatement, Row
from library_site.http.api_errors import APIError
from oauth import scopes
from oauth.credentials import Credential, sha256_hex
from oauth.issuers import lock_issuer, revoke_issued
from oauth.models import APIKey, build_active_condition
from oauth.scopes import ScopeSet

KEY_PATTERN = re.compile(r"lib_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
# Keys that are neither revoked nor expired.
MAX_KEYS_PER_USER = 100
# `last_used_at` is updated at most once per interval.
LAST_USED_PRECISION = timedelta(minutes=1)
KEY_COLUMNS = ("pk", "digest", "scopes", "authorization")


class InvalidKey(Exception):
    """The key does not exist, is revoked or expired, or its owner is not active."""


class KeyNotFound(APIError):
    """You have no valid key with this id."""

    status = 404
    message = "API key not found"


class TooManyKeys(APIError):
    """The owner already has MAX_KEYS_PER_USER keys."""

    status = 409
    message = f"You have {MAX_KEYS_PER_USER} API keys: revoke one first"


class ActiveKey(NamedTuple):
    """A valid key. `scopes` are the requested scopes that the key has and that its owner may have now.

    `authorization` is that of the app that created the key. `is_use_due` says whether to call `record_use`.
    """

    pk: int
    owner_id: int
    scopes: ScopeSet
    authorization: UUID | None
    is_use_due: bool


def create_key(
    owner: User,
    name: str,
    granted_scopes: ScopeSet,
    now: datetime,
    expires_at: datetime | None = None,
    creator: Credential | None = None,
) -> tuple[APIKey, str]:
    """Returns a new key and its text, which is not stored. Raises TooManyKeys, InvalidCredential.

    The key expires no later than `creator`, the credential that creates it.
    """
    prefix = secrets.token_hex(6)
    text = f"lib_{prefix}_{secrets.token_urlsafe(32)}"
    with transaction.atomic():
        made_by = lock_issuer(creator, now)
        # Without the lock, concurrent requests would each count too few keys.
        User.objects.select_for_update(no_key=True).get(pk=owner.pk)
        if get_active_keys(now).filter(owner=owner).count() >= MAX_KEYS_PER_USER:
            raise TooManyKeys
        key = APIKey.objects.create(
            name=name,
            owner=owner,
            prefix=prefix,
            digest=sha256_hex(text),
            scopes=scopes.format_scopes(granted_scopes),
            created_at=now,
            expires_at=min((time for time in (expires_at, made_by.expires_at) if time), default=None),
            creator_id=made_by.creator_id,
            authorization_id=made_by.authorization_id,
        )
    return key, text


def get_active_keys(now: datetime) -> QuerySet[APIKey]:
    """Returns the keys that are neither revoked nor expired."""
    return APIKey.objects.filter(build_active_condition(now))


def find_key(text: str, now: datetime, requested_scopes: ScopeSet = scopes.ALL_SCOPES) -> ActiveKey:
    """Finds the key with this text in one query, which checks only the requested scopes. Raises InvalidKey."""
    rows = get_key_query(requested_scopes).fetch_all(**build_parameters(text, now))
    return check_row(text, rows[0] if rows else None, requested_scopes)


def find_key_and_rows(
    text: str, now: datetime, requested_scopes: ScopeSet, statement: PreparedStatement, parameters: Sequence[Any]
) -> tuple[ActiveKey, list[Row]]:
    """Finds the key as `find_key` does, and fetches the rows of a statement in the same query. Raises InvalidKey."""
    query = get_key_query(requested_scopes)
    row, rows = query.fetch_joined(statement, parameters, **build_parameters(text, now))
    return check_row(text, row, requested_scopes), rows


def build_parameters(text: str, now: datetime) -> dict[str, Any]:
    """Returns the parameters of the query. Raises InvalidKey."""
    match = KEY_PATTERN.fullmatch(text)
    if not match:
        raise InvalidKey
    return {"prefix": match[1], "now": now, "used_before": now - LAST_USED_PRECISION}


def check_row(text: str, row: Mapping[str, Any] | None, requested_scopes: ScopeSet) -> ActiveKey:
    """Raises InvalidKey."""
    if not row or not compare_digest(row["key_digest"], sha256_hex(text)):
        raise InvalidKey
    current_scopes = scopes.select_allowed(requested_scopes.intersection(row["key_scopes"].split()), row)
    # SQLite has no UUID type: the driver returns the hexadecimal digits.
    authorization = row["key_authorization"] and UUID(str(row["key_authorization"]))
    return ActiveKey(row["key_pk"], row["pk"], current_scopes, authorization, bool(row["is_use_due"]))


@cache
def get_key_query(requested_scopes: ScopeSet) -> CompiledQuery:
    """Selects the key with the prefix `prefix` and its owner, if both are active at `now`.

    Only the permissions for `requested_scopes` are joined. Most requests only read and need none.
    """
    is_active = build_active_condition(Parameter("now"), "api_keys__")
    owners = User.objects.filter(is_active, is_active=True, api_keys__prefix=Parameter("prefix"))
    is_use_due = build_due_condition(Parameter("used_before"), "api_keys__")
    columns = {f"key_{name}": F(f"api_keys__{name}") for name in KEY_COLUMNS}
    return CompiledQuery(
        owners.values(
            "pk",
            is_use_due=ExpressionWrapper(is_use_due, BooleanField()),
            **columns,
            **scopes.build_permission_columns(requested_scopes),
        )
    )


def record_use(key: ActiveKey, now: datetime) -> None:
    """Updates `last_used_at`, at most once a minute."""
    if key.is_use_due:
        APIKey.objects.filter(build_due_condition(now - LAST_USED_PRECISION), pk=key.pk).update(last_used_at=now)


def build_due_condition(used_before: datetime | Parameter, path: str = "") -> Q:
    return Q((f"{path}last_used_at", None)) | Q((f"{path}last_used_at__lt", used_before))


def revoke_keys(keys: QuerySet[APIKey], now: datetime) -> int:
    """Revokes keys, the keys that they created, and everything else that these created. Returns the number of keys."""
    count = 0
    with transaction.atomic():
        ids = list(keys.select_for_update(no_key=True).values_list("pk", flat=True))
        while ids:
            count += APIKey.objects.filter(pk__in=ids, revoked_at=None).update(revoked_at=now)
            revoke_issued(Q(creator__in=ids))
            ids = list(
                APIKey.objects.filter(creator__in=ids).select_for_update(no_key=True).values_list("pk", flat=True)
            )
    return count
