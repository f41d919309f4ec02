"""Django's backend for SQLite, whose writers wait in order (`library_site.db.writer_queue`).

Django expects a backend in the module `base` of the package that ENGINE names.
"""

import os
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.backends.sqlite3 import base, features

from library_site.db.config import SQLITE_TIMEOUT
from library_site.db.errors import ClosingErrorWrapper
from library_site.db.writer_queue import WriterQueue, get_queue

WRITE_PATTERN = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE)


class DatabaseFeatures(features.DatabaseFeatures):
    # Django would ask in a transaction, and take an error of one that waits too long for a no.
    supports_json_field = True


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes a turn for each transaction, and for each writing statement outside one. Reads take none.

    Every transaction is IMMEDIATE, so each of them writes.
    """

    features_class = DatabaseFeatures
    # The queue in which this connection has its turn.
    queue: WriterQueue | None = None

    @cached_property
    def wrap_database_errors(self) -> ClosingErrorWrapper:
        return ClosingErrorWrapper(self)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Creates a missing file for its owner alone; SQLite gives its -wal and -shm the same mode. Names the file that
        is no database.
        """
        # SQLite says what is wrong with a file that cannot be created.
        if not self.is_in_memory_db():
            with suppress(OSError):
                os.close(os.open(conn_params["database"], os.O_CREAT | os.O_EXCL, 0o600))
        try:
            return super().get_new_connection(conn_params)
        except sqlite3.DatabaseError as error:
            raise type(error)(f"{conn_params['database']}: {error}") from error

    def begin_turn(self) -> None:
        """Raises DatabaseBusy."""
        queue = get_queue(str(self.settings_dict["NAME"]), get_max_writers())
        seconds = queue.wait(SQLITE_TIMEOUT)
        self.queue = queue
        # A program that does not use the queue can have the lock. SQLite waits for it, and may wait only for the rest.
        self.connection.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")

    def end_turn(self) -> None:
        queue, self.queue = self.queue, None
        if queue:
            queue.end_turn()

    def _start_transaction_under_autocommit(self) -> None:
        self.begin_turn()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # not in the stubs
        except BaseException:
            self.end_turn()
            raise

    def _set_autocommit(self, autocommit: bool) -> None:
        """Django calls it with True after each commit and rollback."""
        try:
            super()._set_autocommit(autocommit)  # type: ignore[misc]  # not in the stubs
        finally:
            if autocommit:
                self.end_turn()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # not in the stubs
        finally:
            self.end_turn()

    def create_cursor(self, name: str | None = None) -> "DatabaseCursor":
        cursor: DatabaseCursor = self.connection.cursor(factory=partial(DatabaseCursor, database=self))
        return cursor


class DatabaseCursor(base.SQLiteCursorWrapper):
    def __init__(self, connection: sqlite3.Connection, database: DatabaseWrapper) -> None:
        super().__init__(connection)
        self.database = database

    def execute(self, query: str, params: Any = None) -> Any:
        return self.run(query, partial(super().execute, query, params))

    def executemany(self, query: str, param_list: Iterable[Any]) -> Any:
        return self.run(query, partial(super().executemany, query, param_list))

    def run(self, query: str, statement: Callable[[], Any]) -> Any:
        if self.database.queue or not WRITE_PATTERN.match(query):
            return statement()
        self.database.begin_turn()
        try:
            return statement()
        finally:
            self.database.end_turn()


def get_max_writers() -> int:
    """Half the threads of a web process: the others answer reads. 0, for other processes, is any number."""
    return max(1, settings.WEB_THREADS // 2) if settings.LIBRARY_PROCESS == "web" else 0


# Those that `keep_open` opened, until the process ends.
kept_connections: list[sqlite3.Connection] = []


def keep_open(path: str) -> None:
    """Opens a connection that ends with this process. When the last one is closed, SQLite deletes the file that readers
    share (-shm). On a full disk it could not be created again, and nobody could read.
    """
    # A database that is missing is not created: requests are answered 503 until it is there.
    with suppress(sqlite3.OperationalError):
        database = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=rw", uri=True, check_same_thread=False)
        database.execute("SELECT count(*) FROM sqlite_master").fetchall()
        kept_connections.append(database)
