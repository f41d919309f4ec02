"""Creates, finds and revokes API keys. A key consists of `lib_`, a prefix that identifies it, and 256 random bits."""

import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from hmac import compare_digest
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, F, Q, QuerySet

from library_site.db.sql import CompiledQuery, Parameter, PreparedStatement, Row
from library_site.http.api_errors import APIError
from oauth import scopes
from oauth.credentials import Credential, InvalidCredential, sha256_hex
from oauth.issuers import lock_issuer, revoke_issued
from oauth.models import APIKey, build_active_condition
from oauth.scopes import PERMISSIONS, PermissionSet, ScopeSet

KEY_PATTERN = re.compile(r"lib_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
# Keys that are neither revoked nor expired.
MAX_KEYS_PER_USER = 100
# `last_used_at` is updated at most once per interval.
LAST_USED_PRECISION = timedelta(minutes=1)
INVALID_KEY_MESSAGE = "The API key is not valid"
KEY_COLUMNS = ("pk", "digest", "scopes", "authorization")


class KeyNotFound(APIError):
    """You have no valid key with this id."""

    status_code = 404
    default_detail = "API key not found"


class TooManyKeys(APIError):
    """The owner already has MAX_KEYS_PER_USER keys."""

    status_code = 409
    default_detail = f"You have {MAX_KEYS_PER_USER} API keys: revoke one first"


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
        issuer = lock_issuer(creator, now)
        # Without the lock, concurrent requests would each count too few keys.
        User.objects.select_for_update(no_key=True).get(pk=owner.pk)
        if list_active_keys(now).filter(owner=owner).count() >= MAX_KEYS_PER_USER:
            raise TooManyKeys
        key = APIKey.objects.create(
            name=name,
            owner=owner,
            prefix=prefix,
            digest=sha256_hex(text),
            scopes=scopes.format_scopes(granted_scopes),
            created_at=now,
            expires_at=min((time for time in (expires_at, issuer.expires_at) if time), default=None),
            creator_id=issuer.creator_id,
            authorization_id=issuer.authorization_id,
        )
    return key, text


def list_active_keys(now: datetime) -> QuerySet[APIKey]:
    """Returns the keys that are neither revoked nor expired."""
    return APIKey.objects.filter(build_active_condition(now))


def get_credential(text: str, now: datetime, asked: PermissionSet = PERMISSIONS) -> Credential:
    """Returns the credential of the key with this text, in one query, and records its use. Raises InvalidCredential.

    The credential has those of the permissions `asked` that its owner has now, and the scopes of the key that they
    cover.
    """
    rows = get_key_query(asked).fetch_all(**build_parameters(text, now))
    return build_credential(text, rows[0] if rows else None, asked, now)


def get_credential_and_rows(
    text: str, now: datetime, asked: PermissionSet, statement: PreparedStatement, parameters: Sequence[Any]
) -> tuple[Credential, list[Row]]:
    """Returns what `get_credential` does, and the rows of a statement, in the same query."""
    query = get_key_query(asked)
    row, rows = query.fetch_joined(statement, parameters, **build_parameters(text, now))
    return build_credential(text, row, asked, now), rows


def build_parameters(text: str, now: datetime) -> dict[str, Any]:
    """Returns the parameters of the query. Raises InvalidCredential."""
    match = KEY_PATTERN.fullmatch(text)
    if not match:
        raise InvalidCredential(INVALID_KEY_MESSAGE)
    return {"prefix": match[1], "now": now, "used_before": now - LAST_USED_PRECISION}


def build_credential(text: str, row: Mapping[str, Any] | None, asked: PermissionSet, now: datetime) -> Credential:
    """Raises InvalidCredential."""
    if not row or not compare_digest(row["key_digest"], sha256_hex(text)):
        raise InvalidCredential(INVALID_KEY_MESSAGE)
    if row["is_use_due"]:
        unused = build_due_condition(now - LAST_USED_PRECISION)
        APIKey.objects.filter(unused, pk=row["key_pk"]).update(last_used_at=now)
    rights = scopes.select_rights(row, scopes.ALL_SCOPES.intersection(row["key_scopes"].split()), asked)
    # SQLite has no UUID type: the driver returns the hexadecimal digits.
    authorization = row["key_authorization"] and UUID(str(row["key_authorization"]))
    name = f"key {row['key_pk']}"
    return Credential(name, rights.scopes, row["pk"], row["key_pk"], authorization, None, rights.permissions)


@cache
def get_key_query(asked: PermissionSet) -> CompiledQuery:
    """Selects the key with the prefix `prefix` and its owner, if both are active at `now`.

    Only the permissions `asked` are looked up. Most requests only read and need none.
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
            **scopes.build_permission_columns(asked),
        )
    )


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
