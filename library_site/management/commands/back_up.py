"""Copies the database and the keys that belong to it, while the library runs."""

import os
import shlex
import shutil
import sqlite3
import subprocess
import urllib.request
from argparse import ArgumentParser
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.utils import timezone
from psycopg import sql

from library_site.backups.contents import (
    Contents,
    count_postgresql,
    count_sqlite,
    describe_differences,
    format_contents,
)
from library_site.backups.records import record_backup
from library_site.backups.retention import Retention, delete_old, name_backup
from library_site.db.connections import get_libpq_parameters

# What is beside the copy of the database.
KEYS, ENVIRONMENT, CONTENTS = ".jwks.json", ".env", ".contents.json"
ENCRYPTED = ".encrypted"
# Seconds that the page elsewhere has to answer.
PING_TIMEOUT = 10


class Command(BaseCommand):
    help = "Copies the database to FILE, and the keys that belong to it beside it, while the library runs."
    # The copy matters more than what the checks say.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", type=Path, help="a file that does not exist, or with --folder a folder; keys get a suffix"
        )
        parser.add_argument(
            "--folder", action="store_true", help="name the file by the time, and delete old backups of the folder"
        )
        for period, default in (("days", 7), ("weeks", 5), ("months", 12)):
            parser.add_argument(
                f"--{period}", type=int, default=default, help=f"{period} that keep a backup (default: {default})"
            )
        parser.add_argument("--verify", action="store_true", help="restore the copy elsewhere, and compare")

    def handle(self, *args: Any, file: Path, folder: bool, verify: bool, **options: Any) -> None:
        now = timezone.now()
        copy = file / name_backup(now) if folder else file
        try:
            self.copy(copy, verify)
            if settings.BACKUP_ENCRYPT_COMMAND:
                for path in list_files(copy):
                    encrypt(path)
            record_backup(now)
            if folder:
                retention = Retention(options["days"], options["weeks"], options["months"])
                for name in delete_old(file, retention):
                    self.stdout.write(f"Deleted {name}.")
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}.") from error
        if settings.BACKUP_PING_URL and not ping(settings.BACKUP_PING_URL):
            self.stderr.write("BACKUP_PING_URL does not answer. The backup is made.")

    def copy(self, file: Path, verify: bool) -> None:
        keys, environment, *_ = (Path(f"{file}{suffix}") for suffix in (KEYS, ENVIRONMENT, CONTENTS))
        # A backup that was interrupted is never taken for a whole one.
        part = Path(f"{file}.part")
        part.unlink(missing_ok=True)
        for path in list_files(file):
            if path.exists():
                raise CommandError(f"{path} exists already. Name another file.")
        # `pg_dump` connects by itself. This connection says which database it is.
        connection.ensure_connection()
        write_private(part, b"")
        contents = copy_database(part)
        if verify:
            require_equal(contents, restore_elsewhere(part))
        write_private(keys, settings.OAUTH_JWKS_FILE.read_bytes())
        write_private(environment, format_environment().encode())
        write_private(Path(f"{file}{CONTENTS}"), format_contents(contents))
        part.rename(file)
        self.stdout.write(
            f"Copied the database to {file}, the signing keys to {keys}, the secret keys to {environment}."
        )
        if verify:
            books, newest = contents.get("books_book", 0), contents["newest change"]
            self.stdout.write(f"Restored it elsewhere: it has all rows, {books} books, and the newest change {newest}.")


def list_files(file: Path) -> list[Path]:
    return [file, *(Path(f"{file}{suffix}") for suffix in (KEYS, ENVIRONMENT, CONTENTS))]


def require_equal(expected: Contents, found: Contents) -> None:
    """Raises CommandError."""
    if differences := describe_differences(expected, found):
        raise CommandError(f"The backup is not whole: {'; '.join(differences)}.")


def encrypt(path: Path) -> None:
    """Replaces a file by an encrypted one. Raises CommandError, and keeps nothing that is half written."""
    encrypted = Path(f"{path}{ENCRYPTED}")
    write_private(encrypted, b"")
    with path.open("rb") as source, encrypted.open("wb") as target:
        command = shlex.split(settings.BACKUP_ENCRYPT_COMMAND)
        status = subprocess.run(command, stdin=source, stdout=target, check=False).returncode
        os.fsync(target.fileno())
    if status or not encrypted.stat().st_size:
        encrypted.unlink()
        raise CommandError(f"BACKUP_ENCRYPT_COMMAND failed: {path} is not encrypted.")
    path.unlink()


def ping(url: str) -> bool:
    """Whether the page answers. It tells somebody when it was not called."""
    try:
        with urllib.request.urlopen(url, data=b"", timeout=PING_TIMEOUT):  # noqa: S310  # an operator's address of http
            return True
    except OSError:
        return False


def write_private(path: Path, content: bytes) -> None:
    """Creates a file that its owner alone may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def copy_database(path: Path) -> Contents:
    """Returns what the copy must have."""
    if connection.vendor == "sqlite":
        copy_sqlite(path)
        return count_sqlite(path)
    return dump_postgresql(path)


def copy_sqlite(path: Path) -> None:
    """Copies the database as it is at one moment, with what is still in its write-ahead log. Writers go on."""
    with closing(sqlite3.connect(path)) as copy:
        connection.connection.backup(copy)


def dump_postgresql(path: Path) -> Contents:
    """Runs pg_dump, on the same snapshot in which the rows are counted. Raises CommandError."""
    with psycopg.connect(**get_libpq_parameters(connection)) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        [snapshot] = reader.execute("SELECT pg_export_snapshot()").fetchone() or [""]
        run_client("pg_dump", "--format=custom", f"--snapshot={snapshot}", f"--file={path}")
        return count_postgresql(reader)


def restore_elsewhere(path: Path) -> Contents:
    """Restores a copy into a database that is dropped again, and counts. Raises CommandError."""
    if connection.vendor == "sqlite":
        try:
            return count_sqlite(path)
        except sqlite3.Error as error:
            raise CommandError(f"The backup is not whole: {error}.") from error
    name = f"{connection.settings_dict['NAME']}_verify_{os.getpid()}"
    parameters = get_libpq_parameters(connection)
    with closing(psycopg.connect(**parameters, autocommit=True)) as server:
        try:
            server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        except psycopg.Error as error:
            reason = " ".join(str(error).split())
            raise CommandError(f"No database to verify the backup in: {reason}. The user needs CREATEDB.") from error
        try:
            run_client("pg_restore", "--no-owner", "--exit-on-error", str(path), database=name)
            with psycopg.connect(**{**parameters, "dbname": name}) as restored:
                return count_postgresql(restored)
        finally:
            with suppress(psycopg.Error):
                server.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


def run_client(program: str, *options: str, database: str = "") -> None:
    """Runs a client of PostgreSQL. Raises CommandError, which says how to run it elsewhere."""
    # The options of Django's own client are those of the others, too.
    named = {**connection.settings_dict, **({"NAME": database} if database else {})}
    (_, *client_options), environment = connection.client.settings_to_cmd_args_env(named, [])
    if program == "pg_restore":
        client_options[-1] = f"--dbname={client_options[-1]}"
    command = [program, *options, *client_options]
    if not shutil.which(program):
        call = shlex.join([program, "--format=custom", "--file=FILE", *client_options])
        raise CommandError(f"{program} is missing. Install postgresql-client, or run this where it is: {call}")
    if subprocess.run(command, env={**os.environ, **(environment or {})}, check=False).returncode:
        raise CommandError(f"{program} failed: nothing was copied.")


def format_environment() -> str:
    """The secret keys as lines for a shell or for an EnvironmentFile of systemd."""
    fallbacks = ",".join(settings.SECRET_KEY_FALLBACKS)
    variables = {"SECRET_KEY": settings.SECRET_KEY, **({"SECRET_KEY_FALLBACKS": fallbacks} if fallbacks else {})}
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
