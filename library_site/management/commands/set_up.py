"""Prepares this machine and its database for `serve`."""

import fcntl
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

from library_site.management.commands.migrate import take_advisory_lock


class Command(BaseCommand):
    help = "Creates what is missing: the key that signs access tokens, the tables of the database, the static files."
    # The checks fail without a signing key; `serve` runs them.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--example-books", action="store_true", help="add 1,000 books if there is none")

    def handle(self, *args: Any, example_books: bool, **options: Any) -> None:
        # Two that create the same tables would fail. The lock ends with the process.
        with (settings.DATA_DIR / "set_up.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                if connection.vendor == "postgresql":
                    # Machines with folders of their own must not each create a signing key.
                    take_advisory_lock(connection, self.stdout)
                self.set_up(example_books)
            except OperationalError as error:
                reason = " ".join(str(error).split())
                raise CommandError(f"The database of DATABASE_URL does not answer: {reason}") from error

    def set_up(self, example_books: bool) -> None:
        call_command("rotate_signing_key", if_missing=True, stdout=self.stdout)
        self.migrate()
        if example_books:
            call_command("seed_books", if_empty=True, stdout=self.stdout)
        if not settings.STATIC_ROOT.exists():
            self.stdout.write(f"Copying the styles and scripts of the pages to {settings.STATIC_ROOT}.")
        call_command("collectstatic", interactive=False, verbosity=0)

    def migrate(self) -> None:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            verb = "Updating" if executor.loader.applied_migrations else "Creating"
            self.stdout.write(f"{verb} the tables of the database.")
        # Without a plan too: what every `migrate` checks and registers depends on settings.
        call_command("migrate", verbosity=0)
