"""Looks books up in the catalogues of other libraries, and remembers what they answered.

Each process remembers for itself. What failed is asked again.
"""

import asyncio
from collections.abc import Sequence

from django.conf import settings
from django.core.cache import cache

from books.files.catalogues.entries import CatalogueLookup

# Seconds for which an answer counts. A book that is new may be catalogued any day.
FOUND_LIFETIME, ABSENCE_LIFETIME = 7 * 24 * 3600, 3600


def has_catalogues() -> bool:
    return bool(settings.SRU_SERVERS)


def find_remembered(isbn13: str) -> CatalogueLookup | None:
    """Returns an earlier answer, None if there is none that counts."""
    lookup: CatalogueLookup | None = cache.get(build_cache_key(isbn13))
    return lookup


def look_up(isbn13s: Sequence[str], seconds: float) -> list[CatalogueLookup]:
    """Asks about all at the same time, for so many seconds at most."""
    # The import takes a tenth of a second, which no process pays that looks nothing up.
    from books.files.catalogues.servers import ask_about_books

    lookups = asyncio.run(ask_about_books(isbn13s, seconds))
    for isbn13, lookup in zip(isbn13s, lookups, strict=True):
        remember(isbn13, lookup)
    return lookups


def remember(isbn13: str, lookup: CatalogueLookup) -> None:
    if lookup.entry:
        cache.set(build_cache_key(isbn13), lookup._replace(problems=()), FOUND_LIFETIME)
    elif not lookup.problems:
        cache.set(build_cache_key(isbn13), lookup, ABSENCE_LIFETIME)


def build_cache_key(isbn13: str) -> str:
    return f"catalogue:{isbn13}"
