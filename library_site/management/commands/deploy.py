"""Brings this machine and its database up to date, before the processes are restarted."""

from argparse import ArgumentParser
from collections.abc import Set
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from library_site.db.migration_state import Key
from library_site.deployment.releases import RELEASES, VERSION, find_release, list_unknown_migrations
from library_site.management.commands import set_up


class Command(set_up.Command):
    help = "Does all that a new or updated machine needs before its processes start: `set_up`, then `check --deploy`."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Example books are for a developer's machine."""
        parser.add_argument("--skip-checks", action="store_true", help="run no checks: the server runs its own")

    def handle(self, *args: Any, **options: Any) -> None:
        super().handle(*args, example_books=False, **options)
        if not options["skip_checks"]:
            call_command("check", "--deploy", "--database", "default")

    def set_up(self, example_books: bool) -> None:
        applied = MigrationRecorder(connection).applied_migrations().keys()
        require_no_later_release(applied)
        if applied:
            set_up.require_shared_keys()
        self.stdout.write(describe_upgrade(applied))
        super().set_up(example_books)


def require_no_later_release(applied: Set[Key]) -> None:
    """Raises CommandError if a later release has changed the tables."""
    unknown = list_unknown_migrations(applied)
    if unknown:
        raise CommandError(
            f"A later release has changed this database: {'.'.join(unknown[-1])} is not in {VERSION}. Older code runs"
            " on its tables as they are: restart the processes without `deploy`, containers with SET_UP=false"
            " (docs/operations/install.md, Upgrade and rollback)."
        )


def describe_upgrade(applied: Set[Key]) -> str:
    if not applied:
        return f"Library API {VERSION}, on a new database."
    release = find_release(applied)
    if release is None:
        return f"Library API {VERSION}, on a database from before {RELEASES[0].version}."
    if release.version == VERSION:
        return f"Library API {VERSION}, whose tables the database has."
    return f"From Library API {release.version} to {VERSION}. CHANGELOG.md says what to do for it."
