"""Every address of the library by its name, and every dotted name that is imported when it is needed."""

from collections.abc import Iterator
from pkgutil import resolve_name
from typing import Any

from django.apps import apps
from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.module_loading import import_string

from library_site.http.versions import KNOWN_VERSIONS
from webhooks.api.openapi import PING
from webhooks.registry import EVENT_KINDS

ADDRESSES = r"""
api/v2/books v2:books
api/v2/books/bulk v2:bulk
api/v2/books/<str:book_id> v2:book
api/v2/books/<str:book_id>/history v2:book-history
api/v2/books/<str:book_id>/revert v2:book-revert
api/v2/books/<str:book_id>/restore v2:book-restore
api/v2/operations v2:operations
api/v2/operations/<int:operation_id> v2:operation
api/v2/operations/<int:operation_id>/cancel v2:operation-cancel
api/v2/operations/<int:operation_id>/undo v2:operation-undo
api/v2/changes v2:changes
api/v2/api-keys v2:api-keys
api/v2/^api-keys/(?P<key_id>[0-9a-f]{12})$ v2:api-key
api/v2/webhooks v2:webhooks
api/v2/webhooks/<int:webhook_id> v2:webhook
api/v2/webhooks/<int:webhook_id>/secret v2:webhook-secret
api/v2/webhooks/<int:webhook_id>/secret/promote v2:webhook-promote
api/v2/webhooks/<int:webhook_id>/ping v2:webhook-ping
api/v2/webhooks/<int:webhook_id>/replay v2:webhook-replay
api/v2/webhooks/<int:webhook_id>/deliveries v2:deliveries
api/v2/webhooks/<int:webhook_id>/deliveries/<int:delivery_id> v2:delivery
api/v2/webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/redeliver v2:redeliver
api/v2/events v2:events
api/books v1:books
api/books/<str:book_id> v1:book
 root
docs/oauth2-redirect.html None
^docs/?$ docs
^openapi\.json/?$ openapi
^docs/v1/?$ None
^docs/v2/?$ None
^openapi/v1\.json/?$ openapi-v1
^openapi/v2\.json/?$ openapi-v2
^oauth/authorize/?$ oauth:authorize
^oauth/token/?$ oauth:token
^oauth/refresh/?$ oauth:refresh
^oauth/resource/?$ oauth:resource
^oauth/revoke/?$ oauth:revoke
^oauth/introspect/?$ oauth:introspect
.well-known/oauth-authorization-server oauth:metadata
.well-known/oauth-protected-resource/api oauth:protected-resource
.well-known/oauth-protected-resource oauth:protected-server
.well-known/jwks.json oauth:jwks
accounts/^login/?$ accounts:login
accounts/^login/code/?$ accounts:code
accounts/^logout/?$ accounts:logout
accounts/^apps/?$ accounts:apps
accounts/^language/?$ accounts:language
accounts/^profile/?$ accounts:profile
accounts/^password/?$ accounts:password
accounts/^password/forgotten/?$ accounts:password-reset
accounts/^password/sent/?$ accounts:password-reset-sent
accounts/^password/new/?$ accounts:new-password
accounts/^password/set/?$ accounts:password-set
accounts/^invitation/?$ accounts:invitation
accounts/^two-factor/?$ accounts:two-factor
admin/login/ None
admin/logout/ None
admin/password_change/ None
webhooks/receive/<slug:source> webhooks:receive
^admin/r/ None
"""


def iter_addresses(
    patterns: list[URLPattern | URLResolver], prefix: str = "", namespace: str = ""
) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        path = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from iter_addresses(pattern.url_patterns, path, inner)
        else:
            yield path, f"{namespace}{pattern.name}"


def test_every_address_has_its_name() -> None:
    addresses = iter_addresses(get_resolver().url_patterns)
    lines = [f"{path} {name}" for path, name in addresses if not name.startswith("admin:")]
    assert lines == ADDRESSES.strip().split("\n")


def iter_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from iter_strings(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from iter_strings(item)


def test_what_settings_name_can_be_imported() -> None:
    """Neither mypy nor import-linter sees these names."""
    roots = tuple(f"{app}." for app in settings.OWN_APPS)
    # The scopes name permissions.
    fields = {name: getattr(settings, name) for name in dir(settings) if name.isupper() and name != "OAUTH_SCOPES"}
    names = [text for text in iter_strings(fields) if text.startswith(roots) and "/" not in text]
    assert {"library_site.urls", "library_site.db.sessions"} <= set(names)
    assert len(names) > 25
    models = {text for name, text in fields.items() if name.endswith("_MODEL")}
    for name in names:
        (apps.get_model if name in models else resolve_name)(name)


def test_what_versions_and_kinds_name_can_be_imported() -> None:
    assert all(version.modules for version in KNOWN_VERSIONS)
    assert [import_string(kind.document).example for kind in (*EVENT_KINDS.values(), PING)]
