"""Backups: copies a snapshot of the database, verifies the copy, records its time, and deletes old ones."""

import os
import re
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

from library_site.db.connections import get_libpq_parameters

TABLES_SQL = {
    "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
    # Without virtual tables, as those of FTS5, which are derived from others.
    "sqlite": "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    " AND name NOT GLOB 'sqlite_*' ORDER BY 1",
}
PREFIX, TIME_FORMAT = "library-", "%Y%m%dT%H%M%SZ"
NAME = re.compile(rf"{PREFIX}(\d{{8}}T\d{{6}}Z)(?:\..+)?")
Contents = Mapping[str, int]
"""The numbers of rows by table."""


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
        return count_rows(reader)


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
                return count_rows(restored)
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


def count_sqlite(path: Path) -> Contents:
    """Raises sqlite3.Error for a damaged file."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
        [(state,), *_] = database.execute("PRAGMA integrity_check")
        if state != "ok":
            raise sqlite3.DatabaseError(state)
        return count_rows(database)


def count_rows(database: Any) -> Contents:
    """Counts with a connection of the driver."""
    tables = [name for (name,) in database.execute(TABLES_SQL[connection.vendor])]
    return {name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables}  # noqa: S608


def describe_differences(expected: Contents, found: Contents) -> list[str]:
    names = sorted(expected.keys() | found.keys())
    return [
        f"{name}: {found.get(name, 'nothing')} instead of {expected.get(name, 'nothing')}"
        for name in names
        if expected.get(name) != found.get(name)
    ]


class Retention(NamedTuple):
    """For how many days, weeks (ISO 8601) and months one backup is kept."""

    days: int
    weeks: int
    months: int


def name_backup(now: datetime) -> str:
    return f"{PREFIX}{now.astimezone(UTC):{TIME_FORMAT}}"


def delete_old(folder: Path, retention: Retention) -> list[str]:
    """Deletes all other backups, but no unrelated files. Returns the names of the deleted backups. Raises OSError."""
    files: dict[str, list[Path]] = {}
    for path in folder.iterdir():
        if match := NAME.fullmatch(path.name):
            files.setdefault(match[1], []).append(path)
    moments = {time: datetime.strptime(time, TIME_FORMAT).replace(tzinfo=UTC) for time in files}
    kept = choose_kept(moments.values(), retention)
    old = sorted(time for time, moment in moments.items() if moment not in kept)
    for path in (path for time in old for path in files[time]):
        path.unlink()
    return [f"{PREFIX}{time}" for time in old]


def choose_kept(moments: Iterable[datetime], retention: Retention) -> set[datetime]:
    """Always keeps the newest backup: it may be the only good one."""
    newest_first = sorted(moments, reverse=True)
    periods: list[tuple[int, Callable[[datetime], object]]] = [
        (retention.days, datetime.date),
        (retention.weeks, lambda moment: moment.isocalendar()[:2]),
        (retention.months, lambda moment: (moment.year, moment.month)),
    ]
    kept = set(newest_first[:1])
    for count, get_period in periods:
        # The newest backup of a period is assigned last.
        newest = {get_period(moment): moment for moment in reversed(newest_first)}
        kept.update(sorted(newest.values(), reverse=True)[:count])
    return kept


def get_record() -> Path:
    """The file with the time of this machine's last backup."""
    return Path(settings.DATA_DIR) / "last_backup"


def record_backup(now: datetime) -> None:
    """Raises OSError."""
    get_record().write_text(now.astimezone(UTC).isoformat())


def read_backup_time() -> datetime | None:
    """Returns None if there is no backup, or if the record cannot be read."""
    try:
        return datetime.fromisoformat(get_record().read_text())
    except (OSError, ValueError):
        return None
