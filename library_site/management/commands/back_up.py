"""Copies the database and the keys that belong to it, while the library runs."""

import os
import shlex
import shutil
import sqlite3
import subprocess
from argparse import ArgumentParser
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection


class Command(BaseCommand):
    help = "Copies the database to FILE, and the keys that belong to it beside it, while the library runs."
    # The copy matters more than what the checks say.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a file that does not exist; the keys get its name and a suffix")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        keys, environment = Path(f"{file}.jwks.json"), Path(f"{file}.env")
        # A backup that was interrupted is never taken for a whole one.
        part = Path(f"{file}.part")
        part.unlink(missing_ok=True)
        for path in (file, keys, environment):
            if path.exists():
                raise CommandError(f"{path} exists already. Name another file.")
        # `pg_dump` connects by itself. This connection says which database it is.
        connection.ensure_connection()
        try:
            write_private(part, b"")
            copy_database(part)
            write_private(keys, settings.OAUTH_JWKS_FILE.read_bytes())
            write_private(environment, format_environment().encode())
            part.rename(file)
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}.") from error
        self.stdout.write(
            f"Copied the database to {file}, the signing keys to {keys}, the secret keys to {environment}."
        )


def write_private(path: Path, content: bytes) -> None:
    """Creates a file that its owner alone may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def copy_database(path: Path) -> None:
    if connection.vendor == "sqlite":
        copy_sqlite(path)
    else:
        dump_postgresql(path)


def copy_sqlite(path: Path) -> None:
    """Copies the database as it is at one moment, with what is still in its write-ahead log. Writers go on."""
    with closing(sqlite3.connect(path)) as copy:
        connection.connection.backup(copy)


def dump_postgresql(path: Path) -> None:
    """Runs pg_dump. Raises CommandError, which says how to run it elsewhere."""
    # The options of Django's own client are those of pg_dump, too.
    (_, *options), environment = connection.client.settings_to_cmd_args_env(connection.settings_dict, [])
    command = ["pg_dump", "--format=custom", *options]
    if not shutil.which("pg_dump"):
        call = shlex.join([*command[:2], "--file=FILE", *options])
        raise CommandError(f"pg_dump is missing. Install postgresql-client, or run this where it is: {call}")
    dump = subprocess.run([*command, f"--file={path}"], env={**os.environ, **(environment or {})}, check=False)
    if dump.returncode:
        raise CommandError("pg_dump failed: nothing was copied.")


def format_environment() -> str:
    """The secret keys as lines for a shell or for an EnvironmentFile of systemd."""
    fallbacks = ",".join(settings.SECRET_KEY_FALLBACKS)
    variables = {"SECRET_KEY": settings.SECRET_KEY, **({"SECRET_KEY_FALLBACKS": fallbacks} if fallbacks else {})}
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
