"""Which migrations a database has. One that replaces older ones is there when all of those are."""

from functools import cache

from django.db.migrations.loader import MigrationLoader

# App and name.
Key = tuple[str, str]


@cache
def list_migrations() -> dict[Key, frozenset[Key]]:
    """Returns each migration of the code, with the rows that the database has of it."""
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    # Whether those that it replaces are applied is all that Django asks.
    return {key: frozenset(migration.replaces or [key]) for key, migration in (loader.disk_migrations or {}).items()}


def has_all_migrations(applied: set[Key]) -> bool:
    return all(rows <= applied for rows in list_migrations().values())


def list_partial_migrations(applied: set[Key]) -> list[Key]:
    """Returns the migrations of which the database has some replaced ones and lacks others.

    Django leaves such a migration out of its plan, and would report that there is nothing to do.
    """
    return sorted(key for key, rows in list_migrations().items() if rows & applied and not rows <= applied)
