"""Credentials that make keys and endpoints, each with what ends it."""

from collections.abc import Callable
from typing import NamedTuple

from django.contrib.auth.models import User
from django.utils import timezone

from oauth import api_keys
from oauth.credentials import Credential
from oauth.models import APIKey, Authorization
from oauth.tokens import revocations

KINDS = ["token", "key", "app's key that is revoked", "key of an app that ends"]


class CreatorCase(NamedTuple):
    credential: Credential
    end: Callable[[], object]


def create_creator(kind: str, owner: User, scope: str) -> CreatorCase:
    """Creates a credential of one of KINDS with this scope."""
    scopes, now = frozenset({scope}), timezone.now()
    if kind == "key":
        key, _ = api_keys.create_key(owner, "creator", scopes, now)
        return CreatorCase(Credential("key", scopes, 0, key=key.pk), end_keys)
    authorization = Authorization.objects.create(user=owner, scopes=scope, created_at=now)
    token = Credential("token", scopes, 0, authorization=authorization.pk)
    if kind == "token":
        return CreatorCase(token, end_authorizations)
    key, _ = api_keys.create_key(owner, "creator", scopes, now, creator=token)
    end = end_keys if kind == "app's key that is revoked" else end_authorizations
    return CreatorCase(Credential("key", scopes, 0, key=key.pk), end)


def end_keys() -> None:
    api_keys.revoke_keys(APIKey.objects.filter(name="creator"), timezone.now())


def end_authorizations() -> None:
    revocations.revoke_authorizations(Authorization.objects.all(), timezone.now())
