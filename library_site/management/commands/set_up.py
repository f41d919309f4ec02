"""Prepares this machine and its database for `serve`."""

import fcntl
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from library_site.deployment.env import NewSecretKey
from library_site.management.commands.migrate import take_advisory_lock
from library_site.private_files import replace_private


class Command(BaseCommand):
    help = "Creates what is missing: secret and signing keys, the tables of the database, the static files."
    # The checks fail without a signing key; `serve` runs them.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--example-books", action="store_true", help="add 1,000 books if there is none")
        parser.add_argument("--without-database", action="store_true", help="only keys and static files")

    def handle(self, *args: Any, example_books: bool, without_database: bool = False, **options: Any) -> None:
        # Two that create the same tables would fail. The lock ends with the process.
        with (settings.DATA_DIR / "set_up.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if without_database:
                self.create_keys()
                self.copy_static_files()
                return
            try:
                if connection.vendor == "postgresql":
                    # Machines with folders of their own must not each create a signing key.
                    take_advisory_lock(connection, self.stdout)
                self.set_up(example_books)
            except OperationalError as error:
                reason = " ".join(str(error).split())
                raise CommandError(f"The database of DATABASE_URL does not answer: {reason}") from error

    def set_up(self, example_books: bool) -> None:
        if is_secret_key_missing() and MigrationRecorder(connection).applied_migrations():
            require_shared_keys()
        self.create_keys()
        self.migrate()
        if example_books:
            call_command("seed_books", if_empty=True, stdout=self.stdout)
        self.copy_static_files()

    def create_keys(self) -> None:
        if is_secret_key_missing():
            replace_private(settings.SECRET_KEY_PATH, f"{settings.SECRET_KEY}\n".encode())
            self.stdout.write(f"Created the secret key, in {settings.SECRET_KEY_PATH}.")
        call_command("rotate_signing_key", if_missing=True, stdout=self.stdout)

    def copy_static_files(self) -> None:
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


def require_shared_keys() -> None:
    """Raises CommandError if a key is missing: machines with different keys refuse each other's tokens and sessions."""
    missing = [] if settings.OAUTH_JWKS_FILE.exists() else [f"keys in {settings.OAUTH_JWKS_FILE}"]
    if is_secret_key_missing():
        missing.append(f"secret key in {settings.SECRET_KEY_PATH}")
    if missing:
        raise CommandError(
            f"The library has a database already, and no {' and no '.join(missing)}. Copy the file from another"
            " machine or a backup. If the signing keys are lost, `manage.py rotate_signing_key` makes a new one."
        )


def is_secret_key_missing() -> bool:
    """Whether this process made up its key, and no other first start has stored one since."""
    return isinstance(settings.SECRET_KEY, NewSecretKey) and not settings.SECRET_KEY_PATH.exists()
