"""Every dotted name that is imported when it is needed."""

from collections.abc import Iterator
from pkgutil import resolve_name
from typing import Any

from django.apps import apps
from django.conf import settings

from library_site.http.versions import KNOWN_VERSIONS


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
    models = {
        text for name, value in fields.items() if name.endswith(("_MODEL", "_MENU")) for text in iter_strings(value)
    }
    for name in names:
        (apps.get_model if name in models else resolve_name)(name)


def test_what_versions_name_can_be_imported() -> None:
    assert all(version.modules for version in KNOWN_VERSIONS)
