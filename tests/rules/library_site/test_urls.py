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

# The names that developers and our own code reverse.
NAMES = {
    "v2": """
        books bulk book book-history book-revert book-restore operations operation operation-cancel operation-undo
        changes api-keys api-key webhooks webhook webhook-secret webhook-promote webhook-ping webhook-replay deliveries
        delivery redeliver events
    """,
    "v1": "books book",
    "": "root docs openapi openapi-v1 openapi-v2",
    "oauth": "authorize token refresh resource revoke introspect metadata protected-resource protected-server jwks",
    "accounts": """
        login code logout apps language profile password password-reset password-reset-sent new-password password-set
        invitation two-factor
    """,
    "webhooks": "receive",
}
NAMELESS = ["docs/oauth2-redirect.html", "^docs/v1/?$", "^docs/v2/?$", "admin/login/", "admin/logout/"]
NAMELESS += ["admin/password_change/", "^admin/r/"]


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
    addresses = [*iter_addresses(get_resolver().url_patterns)]
    found = [name for _, name in addresses if name != "None" and not name.startswith("admin:")]
    assert found == [":".join(filter(None, [room, name])) for room, names in NAMES.items() for name in names.split()]
    assert [path for path, name in addresses if name == "None"] == NAMELESS


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
