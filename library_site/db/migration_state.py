"""Finds the migrations that a database has. It has a squashed migration when it has all that this one replaces."""

from functools import cache

from django.db.migrations.loader import MigrationLoader

# App and name.
Key = tuple[str, str]


@cache
def list_migrations() -> dict[Key, frozenset[Key]]:
    """Returns each migration of the code, with the rows that record it in the database."""
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    # Django, too, decides by the replaced migrations alone whether a squashed one is applied.
    return {key: frozenset(migration.replaces or [key]) for key, migration in (loader.disk_migrations or {}).items()}


def has_all_migrations(applied: set[Key]) -> bool:
    return all(rows <= applied for rows in list_migrations().values())


def list_partial_migrations(applied: set[Key]) -> list[Key]:
    """Returns the squashed migrations that are partly applied: the database has some of the replaced ones, but not all.

    Django leaves such a migration out of its plan, and would report that there is nothing to do.
    """
    return sorted(key for key, rows in list_migrations().items() if rows & applied and not rows <= applied)
