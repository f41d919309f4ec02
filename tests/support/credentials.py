"""Creates credentials of all kinds, valid and invalid, for requests of one library."""

import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone
from oauth2_provider.models import Application

from oauth import api_keys
from oauth.models import APIKey, Authorization, ChangedRights
from oauth.tokens import revocations
from tests.support.forged_tokens import build_claims, forge_token
from tests.support.oauth_flows import build_bearer_header, create_key_header, create_reader

# The headers of each credential, by its name.
Credentials = Mapping[str, Mapping[str, str]]

PLAIN_NAMES = ["none", "key", "token"]
UNUSUAL_NAMES = [
    "reading key", "key of a reader", "expiring key", "expired key", "revoked key", "key of nobody", "forged key",
    "nonsense as a key", "empty key", "reading token", "token of a reader", "expired token", "revoked token",
    "token of nobody", "foreign token", "forged token", "nonsense as a token", "empty token", "Basic",
    "lower-case Bearer", "key and token",
]  # fmt: skip


def create_plain_credentials(owner: User) -> Credentials:
    """Creates the credentials of PLAIN_NAMES, which allow everything."""
    return {"none": {}, "key": create_key_header(owner), "token": create_token_header(owner)}


def create_unusual_credentials(owner: User, plain: Credentials, expires_at: datetime) -> Credentials:
    """Creates the credentials of UNUSUAL_NAMES. The expiring key expires at this time."""
    key, token = plain["key"], plain["token"]
    reader, former_user = create_reader(), User.objects.create_user("former user", is_active=False)
    ChangedRights.objects.create(user_id=reader.pk, scopes="read", permissions=[], changed_at=timezone.now())
    ChangedRights.objects.create(user_id=former_user.pk, scopes="", permissions=[], changed_at=timezone.now())
    ended = Authorization.objects.create(created_at=expires_at, ended_at=timezone.now())
    # The list in memory may be from before these changes.
    revocations.REVOCATION_LIST.invalidate()
    headers: dict[str, Mapping[str, str]] = {
        "reading key": create_key_header(owner, "read"),
        "key of a reader": create_key_header(reader),
        "expiring key": create_key_header(owner, expires_at=expires_at),
        "expired key": create_key_header(owner, expires_at=expires_at - timedelta(days=1)),
        "revoked key": create_revoked_key_header(owner),
        "key of nobody": create_key_header(former_user),
        "forged key": {"X-API-Key": f"{key['X-API-Key'][:-4]}AAAA"},
        "nonsense as a key": {"X-API-Key": "nonsense"},
        "empty key": {"X-API-Key": ""},
        "reading token": create_token_header(owner, scope="read"),
        "token of a reader": create_token_header(reader),
        "expired token": create_token_header(owner, exp=int(time.time()) - 1),
        "revoked token": create_token_header(owner, sid=str(ended.pk)),
        "token of nobody": create_token_header(former_user),
        "foreign token": create_token_header(owner, aud="https://elsewhere.example/api"),
        "forged token": build_bearer_header(forge_token(build_claims(owner.pk), b"a key of the attacker")),
        "nonsense as a token": build_bearer_header("nonsense"),
        "empty token": build_bearer_header(""),
        "Basic": {"Authorization": "Basic nonsense"},
        "lower-case Bearer": {"Authorization": token["Authorization"].replace("Bearer", "bearer ")},
        "key and token": {**key, **token},
    }
    assert list(headers) == UNUSUAL_NAMES
    return headers


def create_token_header(user: User, **claims: Any) -> dict[str, str]:
    """Forges an access token that is valid for a day, with these changes of its claims."""
    tomorrow = int(time.time()) + 24 * 3600
    return build_bearer_header(forge_token(build_claims(user.pk, **{"exp": tomorrow, **claims})))


def create_app_header(user: User, application: Application | None = None, scopes: str = "read write") -> dict[str, str]:
    """Lets an app in as the user does, and forges a token of this access."""
    access = Authorization.objects.create(user=user, application=application, scopes=scopes, created_at=timezone.now())
    return create_token_header(user, sid=str(access.pk), scope=scopes)


def revoke_keys(owner: User) -> None:
    api_keys.revoke_keys(APIKey.objects.filter(owner=owner), timezone.now())


def expire_keys(owner: User) -> None:
    # SQLite's clock shows whole milliseconds, and may be that much behind.
    APIKey.objects.filter(owner=owner).update(expires_at=timezone.now() - timedelta(milliseconds=1))


def create_revoked_key_header(owner: User) -> dict[str, str]:
    header = create_key_header(owner)
    newest = APIKey.objects.order_by("-pk")[:1]
    api_keys.revoke_keys(APIKey.objects.filter(pk__in=newest.values("pk")), timezone.now())
    return header
