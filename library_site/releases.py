"""The releases, and which one a database is of: each names the last migration of each app that came with it."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from library_site.db.migration_state import Key, list_migrations


class Release(NamedTuple):
    version: str
    # By app. A migration that was replaced later has its old name.
    last_migrations: Mapping[str, str]


# The oldest first. CHANGELOG.md says what each brought, and what to do for it.
RELEASES = (
    Release(
        "1.0.0", {"books": "0023_operation_results", "oauth": "0008_notices", "webhooks": "0009_event_traceparent"}
    ),
    Release(
        "1.1.0",
        {
            "books": "0030_files_of_commands",
            "oauth": "0001_squashed_0008_notices",
            "webhooks": "0010_signature_form_c",
        },
    ),
)
VERSION = RELEASES[-1].version


def find_release(applied: Set[Key]) -> Release | None:
    """Returns the newest release of which a database has all migrations; None if it is older than all, or new."""
    return next((release for release in reversed(RELEASES) if has_release(applied, release)), None)


def has_release(applied: Set[Key], release: Release) -> bool:
    """A database that has all that a migration replaces has that migration, too."""
    known = list_migrations()
    return all(known.get(key, frozenset([key])) <= applied for key in release.last_migrations.items())


def list_unknown_migrations(applied: Set[Key]) -> list[Key]:
    """Returns the migrations of the library that this code does not have: those of a later release."""
    known = set().union(list_migrations(), *list_migrations().values())
    return sorted(key for key in applied if key[0] in RELEASES[-1].last_migrations and key not in known)
