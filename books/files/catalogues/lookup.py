"""Looks up books in the catalogues of other libraries, and caches the results.

Each process has its own cache. Failures are not cached.
"""

import asyncio
from typing import Any, NamedTuple

from django.conf import settings
from django.core.cache import cache

# Seconds for which a result is cached. A new book may be catalogued any day.
FOUND_LIFETIME, ABSENCE_LIFETIME = 7 * 24 * 3600, 3600


class CatalogueEntry(NamedTuple):
    """A book in the catalogue at a host: valid values of its fields."""

    host: str
    values: dict[str, Any]


class CatalogueResult(NamedTuple):
    """The first entry that was found, and why the catalogues asked before it returned none."""

    entry: CatalogueEntry | None = None
    problems: tuple[str, ...] = ()


def has_catalogues() -> bool:
    return bool(settings.SRU_SERVERS)


def find_remembered(isbn13: str) -> CatalogueResult | None:
    lookup: CatalogueResult | None = cache.get(f"catalogue:{isbn13}")
    return lookup


def look_up(isbn13: str, seconds: float) -> CatalogueResult:
    """Queries the catalogues for at most so many seconds."""
    # The import takes a tenth of a second; only processes that look up books need it.
    from books.files.catalogues.sru import ask_servers

    found, problems = asyncio.run(ask_servers(isbn13, seconds))
    lookup = CatalogueResult(CatalogueEntry(*found) if found else None, tuple(problems))
    if lookup.entry or not lookup.problems:
        lifetime = FOUND_LIFETIME if lookup.entry else ABSENCE_LIFETIME
        cache.set(f"catalogue:{isbn13}", lookup._replace(problems=()), lifetime)
    return lookup
