"""Copies a consistent snapshot of the database, and restores a copy into another database."""

import os
import shlex
import shutil
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import psycopg
from django.db import connection
from psycopg import sql

from library_site.db.connections import get_libpq_parameters
from library_site.deployment.backups.contents import Contents, count_postgresql, count_sqlite


class BackupFailed(Exception):
    """The copy failed or is incomplete. The message has the reason."""


def copy_database(path: Path) -> Contents:
    """Copies the database. Returns the contents that the copy must have."""
    if connection.vendor == "sqlite":
        copy_sqlite(path)
        return count_sqlite(path)
    return dump_postgresql(path)


def copy_sqlite(path: Path) -> None:
    """Copies a consistent snapshot, including the write-ahead log. Writers are not blocked."""
    with closing(sqlite3.connect(path)) as copy:
        connection.connection.backup(copy)


def dump_postgresql(path: Path) -> Contents:
    """Runs pg_dump on the same snapshot as the count of rows. Raises BackupFailed."""
    with psycopg.connect(**get_libpq_parameters(connection)) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        [snapshot] = reader.execute("SELECT pg_export_snapshot()").fetchone() or [""]
        run_client("pg_dump", "--format=custom", f"--snapshot={snapshot}", f"--file={path}")
        return count_postgresql(reader)


def restore_elsewhere(path: Path) -> Contents:
    """Restores a copy into a temporary database, and counts its rows. Raises BackupFailed."""
    if connection.vendor == "sqlite":
        try:
            return count_sqlite(path)
        except sqlite3.Error as error:
            raise BackupFailed(f"The backup is not whole: {error}.") from error
    name = f"{connection.settings_dict['NAME']}_verify_{os.getpid()}"
    parameters = get_libpq_parameters(connection)
    with closing(psycopg.connect(**parameters, autocommit=True)) as server:
        try:
            server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        except psycopg.Error as error:
            reason = " ".join(str(error).split())
            raise BackupFailed(f"No database to verify the backup in: {reason}. The user needs CREATEDB.") from error
        try:
            run_client("pg_restore", "--no-owner", "--exit-on-error", str(path), database=name)
            with psycopg.connect(**{**parameters, "dbname": name}) as restored:
                return count_postgresql(restored)
        finally:
            with suppress(psycopg.Error):
                server.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


def run_client(program: str, *options: str, database: str = "") -> None:
    """Runs a PostgreSQL client program. Raises BackupFailed, which explains how to run it on another machine."""
    # All PostgreSQL client programs have the options that Django passes to psql.
    named = {**connection.settings_dict, **({"NAME": database} if database else {})}
    (_, *client_options), environment = connection.client.settings_to_cmd_args_env(named, [])
    if program == "pg_restore":
        client_options[-1] = f"--dbname={client_options[-1]}"
    command = [program, *options, *client_options]
    if not shutil.which(program):
        call = shlex.join([program, "--format=custom", "--file=FILE", *client_options])
        version = connection.connection.info.server_version // 10_000
        raise BackupFailed(
            f"{program} is missing. Install postgresql-client of PostgreSQL {version} or later, into a container image"
            f" with PACKAGES (docs/operations/install.md, Containers). Or run this where it is: {call}"
        )
    if subprocess.run(command, env={**os.environ, **(environment or {})}, check=False).returncode:
        raise BackupFailed(f"{program} failed: nothing was copied.")
