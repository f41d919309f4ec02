"""Copies the database and the keys that belong to it, while the library runs."""

import fcntl
import json
import os
import shlex
import subprocess
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.utils import timezone

from library_site.deployment.backups import (
    BackupFailed,
    Retention,
    copy_database,
    delete_old,
    describe_differences,
    name_backup,
    record_backup,
    restore_elsewhere,
)
from library_site.private_files import create_private

# The files next to the copy of the database.
KEYS, ENVIRONMENT, CONTENTS = ".jwks.json", ".env", ".contents.json"
ENCRYPTED = ".encrypted"


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
            # An interrupted backup must not look like a complete one.
            part = Path(f"{copy}.part")
            with lock_file(part):
                if found := next(filter(Path.exists, list_backup_files(copy)), None):
                    part.unlink(missing_ok=True)
                    raise CommandError(f"{found} exists already. Name another file.")
                try:
                    self.copy(part, copy, verify)
                except BaseException:
                    # The files contain secrets.
                    for path in [part, *list_backup_files(copy)]:
                        path.unlink(missing_ok=True)
                    raise
            record_backup(now)
            if folder:
                retention = Retention(options["days"], options["weeks"], options["months"])
                for name in delete_old(file, retention):
                    self.stdout.write(f"Deleted {name}.")
        except BackupFailed as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}.") from error

    def copy(self, part: Path, file: Path, verify: bool) -> None:
        keys, environment, contents_file = (Path(f"{file}{suffix}") for suffix in (KEYS, ENVIRONMENT, CONTENTS))
        # `pg_dump` connects by itself. This connection says which database it is.
        connection.ensure_connection()
        contents = copy_database(part)
        if verify and (differences := describe_differences(contents, restore_elsewhere(part))):
            raise BackupFailed(f"The backup is not whole: {'; '.join(differences)}.")
        create_private(keys, settings.OAUTH_JWKS_FILE.read_bytes())
        create_private(environment, format_environment().encode())
        create_private(contents_file, json.dumps(contents, indent=1, sort_keys=True).encode())
        part.rename(file)
        if settings.BACKUP_ENCRYPT_COMMAND:
            file, keys, environment, _ = map(encrypt_backup, (file, keys, environment, contents_file))
        self.stdout.write(
            f"Copied the database to {file}, the signing keys to {keys}, the secret keys to {environment}."
        )
        if verify:
            self.stdout.write(f"Restored it elsewhere: it has all {sum(contents.values())} rows.")


def list_backup_files(file: Path) -> list[Path]:
    """Returns all files of a backup, encrypted or not."""
    suffixes = ("", KEYS, ENVIRONMENT, CONTENTS)
    return [Path(f"{file}{suffix}{ending}") for ending in ("", ENCRYPTED) for suffix in suffixes]


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Creates or empties a file that only its owner can read. Raises BackupFailed if another process has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        if not lock_opened(descriptor, path):
            raise BackupFailed(f"Another process writes {path}.")
        os.fchmod(descriptor, 0o600)
        os.ftruncate(descriptor, 0)
        yield
    finally:
        os.close(descriptor)


def lock_opened(descriptor: int, path: Path) -> bool:
    """Locks the file. Returns false if another process has the lock, or has renamed or deleted the file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def encrypt_backup(path: Path) -> Path:
    """Returns the encrypted file, and deletes the other. Raises BackupFailed, OSError."""
    encrypted = Path(f"{path}{ENCRYPTED}")
    create_private(encrypted, b"")
    with path.open("rb") as source, encrypted.open("wb") as target:
        command = shlex.split(settings.BACKUP_ENCRYPT_COMMAND)
        status = subprocess.run(command, stdin=source, stdout=target, check=False).returncode
        os.fsync(target.fileno())
    if status or not encrypted.stat().st_size:
        raise BackupFailed(f"BACKUP_ENCRYPT_COMMAND failed: {path} is not encrypted, and there is no backup.")
    path.unlink()
    return encrypted


def format_environment() -> str:
    """Formats the secret keys for a shell or for systemd's EnvironmentFile."""
    fallbacks = ",".join(settings.SECRET_KEY_FALLBACKS)
    variables = {"SECRET_KEY": settings.SECRET_KEY, **({"SECRET_KEY_FALLBACKS": fallbacks} if fallbacks else {})}
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
