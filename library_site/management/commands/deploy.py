"""Brings this machine and its database up to date, before the processes are restarted."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from library_site.management.commands import set_up


class Command(set_up.Command):
    help = "Does all that a new or updated machine needs before its processes start: `set_up`, then `check --deploy`."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Example books are for a developer's machine."""

    def handle(self, *args: Any, **options: Any) -> None:
        require_shared_key()
        super().handle(*args, example_books=False, **options)
        call_command("check", "--deploy", "--database", "default")


def require_shared_key() -> None:
    """Raises CommandError if the library has a key elsewhere: machines with different keys refuse each other's tokens.

    `rotate_signing_key` makes a new one where the old one is lost.
    """
    if not settings.OAUTH_JWKS_FILE.exists() and MigrationRecorder(connection).applied_migrations():
        raise CommandError(
            f"The library has a database already, and no keys in {settings.OAUTH_JWKS_FILE}. Copy the file from another"
            " machine or a backup. If it is lost, `manage.py rotate_signing_key` makes a new one."
        )
