"""The releases, each with its last migration of each app. They tell the release of a database."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from library_site.db.migration_state import Key, list_migrations


class Release(NamedTuple):
    version: str
    # By app. A migration that was squashed later keeps its old name here.
    last_migrations: Mapping[str, str]


# The oldest first. CHANGELOG.md describes each release and its upgrade. Only the last one may change, until it is
# released: tests/rules/library_site/test_released.py has the others.
RELEASES = (
    Release(
        "1.0.0", {"books": "0023_operation_results", "oauth": "0008_notices", "webhooks": "0009_event_traceparent"}
    ),
    Release(
        "1.1.0",
        {
            "books": "0029_lent_books_filled",
            "oauth": "0001_squashed_0008_notices",
            "webhooks": "0010_signature_form_c",
        },
    ),
    Release(
        "1.2.0",
        {
            "books": "0039_match_keys_of_search_texts",
            "oauth": "0002_changed_permissions",
            "webhooks": "0012_no_mirrors",
        },
    ),
)
VERSION = RELEASES[-1].version


def find_release(applied: Set[Key]) -> Release | None:
    """Returns the newest release whose migrations a database has. Returns None for a new or older database."""
    known = list_migrations()
    for release in reversed(RELEASES):
        # A database has a squashed migration if it has all that this one replaces.
        if all(known.get(key, frozenset([key])) <= applied for key in release.last_migrations.items()):
            return release
    return None


def list_unknown_migrations(applied: Set[Key]) -> list[Key]:
    """Returns the applied migrations of the library that are not in this code: a later release has them."""
    known = set().union(list_migrations(), *list_migrations().values())
    return sorted(key for key in applied if key[0] in RELEASES[-1].last_migrations and key not in known)
