"""The table of all versions of the interface, and when each ends (specification, Section 9)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from urllib.parse import quote

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.urls import URLPattern
from django.utils.http import http_date

from library_site.http.errors import ErrorFormat, detail_format, envelope_format
from library_site.http.request_log import Headers

API_ROOT = "/api"
# Addresses for programs; all others are pages.
PROGRAM_PREFIXES = (f"{API_ROOT}/", "/webhooks/")


@dataclass(frozen=True)
class Lifecycle:
    """When a version is deprecated and when it ends, and the pages about that. Times are aware."""

    deprecated_on: datetime | None = None
    sunset_on: datetime | None = None
    migration_url: str = ""
    changelog_url: str = ""
    retired: bool = False

    def build_headers(self, number: int, successor: str) -> Headers:
        """RFC 9745 (Deprecation), RFC 8594 (Sunset), RFC 5829 (successor-version), RFC 7234, 5.5 (Warning).

        `successor` is a path, or empty.
        """
        if not self.deprecated_on:
            return []
        urls = {
            "deprecation": self.migration_url,
            "describedby": self.changelog_url,
            "successor-version": successor and f"{settings.PUBLIC_URL}{quote(successor)}",
        }
        end = f" and ends on {self.sunset_on:%Y-%m-%d}" if self.sunset_on else ""
        headers = [
            ("Deprecation", f"@{int(self.deprecated_on.timestamp())}"),
            ("Sunset", http_date(self.sunset_on.timestamp()) if self.sunset_on else ""),
            ("Link", ", ".join(f'<{url}>; rel="{relation}"' for relation, url in urls.items() if url)),
            ("Warning", f'299 - "Version {number} is deprecated from {self.deprecated_on:%Y-%m-%d} on{end}"'),
        ]
        return [(name, value) for name, value in headers if value]


@dataclass(frozen=True)
class Version:
    """`home` is the common prefix of its addresses, without a slash at the end; `error_format` formats its errors.

    API_URLS names its URL modules. Each has `urlpatterns`. It may have `body_limits`: by path below the home, the
    largest body in bytes, where it is not DATA_UPLOAD_MAX_MEMORY_SIZE.
    """

    number: int
    home: str
    error_format: ErrorFormat
    lifecycle: Lifecycle = field(default_factory=Lifecycle)

    @cached_property
    def name(self) -> str:
        return f"v{self.number}"

    @cached_property
    def modules(self) -> list[ModuleType]:
        """Its URL modules. They can be imported only after Django is set up."""
        return [import_module(name) for name in settings.API_URLS[self.number]]

    @cached_property
    def urlpatterns(self) -> list[URLPattern]:
        return [pattern for module in self.modules for pattern in module.urlpatterns]

    @cached_property
    def body_limits(self) -> Mapping[str, int]:
        return {path: limit for module in self.modules for path, limit in getattr(module, "body_limits", {}).items()}


@cache
def get_versions() -> dict[int, Version]:
    """Returns the versions that the settings let be served, by number. Raises ImproperlyConfigured."""
    lifecycles = {number: Lifecycle(**dates) for number, dates in settings.API_LIFECYCLES.items()}
    if unknown_numbers := lifecycles.keys() - {version.number for version in KNOWN_VERSIONS}:
        raise ImproperlyConfigured(f"API_V{min(unknown_numbers)}_… is set, and there is no such version.")
    versions = (replace(known, lifecycle=lifecycles.get(known.number, Lifecycle())) for known in KNOWN_VERSIONS)
    served_versions = {version.number: version for version in versions if not version.lifecycle.retired}
    if not served_versions:
        raise ImproperlyConfigured("API_V1_RETIRED and the like leave no version to serve.")
    return served_versions


# The last is the latest.
KNOWN_VERSIONS = [
    Version(1, API_ROOT, detail_format),
    Version(2, f"{API_ROOT}/v2", envelope_format),
]
# The version of a request without a selector: the paths of the specification have none.
DEFAULT_VERSION = 1
