"""Tells whether this process can answer requests: what `/readyz` reports."""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Generic, TypeVar

from django.conf import settings
from django.db import DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.module_loading import import_string
from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.errors import ConnectionTimeout

from library_site.db.connections import get_libpq_parameters
from library_site.db.hangs import DatabaseHangs, server_state
from library_site.db.migration_state import has_all_migrations

log = logging.getLogger(__name__)
Result = TypeVar("Result")

# Whether each check passed, by its name.
Results = Mapping[str, bool]

# Seconds for which a result is reused: anyone can request it, any number of times.
RESULT_LIFETIME = 1.0
# Seconds after which an unfinished check counts as failed, and after which a connection attempt is given up.
CHECK_TIMEOUT, CONNECT_TIMEOUT = 2.5, 2
# Seconds for which the last response of PostgreSQL shows that it works.
SERVED_LIFETIME = 5.0
MIGRATIONS_TABLE = "django_migrations"
DATABASE_CHECKS = ("database_server", "database", "migrations")


class SharedRun(Generic[Result]):
    """Reuses a result for `lifetime` seconds. While a run hangs, no other begins: only one thread is blocked."""

    def __init__(self, function: Callable[[], Result], lifetime: float, timeout: float) -> None:
        self.function = function
        self.lifetime, self.timeout = lifetime, timeout
        self.lock = Lock()
        self.run: Future[Result] | None = None
        self.began_at = 0.0

    def begin(self) -> tuple[Future[Result], float]:
        """Returns the current run, or a new one if the result is too old, and the time when it counts as hanging."""
        now = time.monotonic()
        with self.lock:
            if self.run is None or (self.run.done() and now - self.began_at > self.lifetime):
                self.run, self.began_at = Future(), now
                Thread(target=self.fulfil, args=[self.run], name="monitoring", daemon=True).start()
            return self.run, self.began_at + self.timeout

    def get(self) -> Result | None:
        """Returns the result, or None if the run has not ended within the timeout. Raises what the function raises."""
        run, deadline = self.begin()
        try:
            return run.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            return None

    def fulfil(self, run: "Future[Result]") -> None:
        try:
            run.set_result(self.function())
        except Exception as error:
            run.set_exception(error)
        finally:
            # They belong to this thread, which ends.
            connections.close_all()


class Readiness:
    """The results of the checks, and a line in the log when they change.

    Each check runs separately, so that one that hangs does not block the others.
    """

    def __init__(self, check_database: Callable[[], Results], timeout: float = CHECK_TIMEOUT) -> None:
        self.check_database, self.timeout = check_database, timeout
        # By the names of the results.
        self.runs: dict[tuple[str, ...], SharedRun[Results]] = {}
        self.lock = Lock()
        self.was_ready = True

    def get_results(self) -> Results:
        """Returns within the timeout: a check that has not ended counts as failed."""
        self.add_run(DATABASE_CHECKS, self.check_database)
        for name in settings.READINESS_CHECKS:
            self.add_run((name,), partial(run_check, name))
        for run in self.runs.values():
            run.begin()
        results: dict[str, bool] = {}
        for names, run in self.runs.items():
            results |= run.get() or dict.fromkeys(names, False)
        self.log_change(results)
        return results

    def add_run(self, names: tuple[str, ...], function: Callable[[], Results]) -> None:
        """Adds a run unless it exists. `setdefault` is atomic, so two threads cannot both add it."""
        self.runs.setdefault(names, SharedRun(function, RESULT_LIFETIME, self.timeout))

    def log_change(self, results: Results) -> None:
        with self.lock:
            was_ready, self.was_ready = self.was_ready, all(results.values())
        if was_ready and not self.was_ready:
            log.warning("Not ready: %s", ", ".join(name for name, has_passed in results.items() if not has_passed))
        elif self.was_ready and not was_ready:
            log.warning("Ready again.")


def run_check(name: str) -> Results:
    """The error is only logged, because the response is public."""
    try:
        import_string(settings.READINESS_CHECKS[name])()
    except Exception:
        log.debug("A check failed.", exc_info=True)
        return {name: False}
    return {name: True}


def check_database() -> Results:
    """Opens a new connection, because those of the threads may be busy."""
    database = connection.copy()
    database.inc_thread_sharing()
    if database.vendor == "postgresql":
        database.settings_dict["OPTIONS"] |= {"connect_timeout": CONNECT_TIMEOUT}
    with closing(database):
        try:
            applied = read_migrations(database)
        except DatabaseError as error:
            is_running = is_server_running(database, error)
            # If PostgreSQL accepts no more connections, the existing ones of the threads can still work.
            is_serving = is_running and time.monotonic() - server_state.answered_at < SERVED_LIFETIME
            return {"database_server": is_running, "database": is_serving, "migrations": is_serving}
    return {"database_server": True, "database": True, "migrations": has_all_migrations(applied)}


def read_migrations(database: BaseDatabaseWrapper) -> set[tuple[str, str]]:
    """Returns app and name of each migration that the database has. Raises DatabaseError."""
    if database.vendor == "sqlite" and not Path(database.settings_dict["NAME"]).exists():
        # SQLite would create the file.
        raise DatabaseError("There is no such file.")
    with database.cursor() as cursor:
        if MIGRATIONS_TABLE not in database.introspection.table_names(cursor):
            return set()
        # Django's own function would use the connection of the thread.
        cursor.execute(f"SELECT app, name FROM {MIGRATIONS_TABLE}")  # noqa: S608  # a constant
        return set(cursor.fetchall())


def is_server_running(database: BaseDatabaseWrapper, error: DatabaseError) -> bool:
    """Tells whether the server of a database accepts connections. For SQLite, it tells whether the folder exists."""
    if database.vendor == "sqlite":
        return Path(database.settings_dict["NAME"]).absolute().parent.is_dir()
    cause = error.__cause__
    if database.connection is not None or isinstance(cause, DatabaseHangs | ConnectionTimeout):
        # PostgreSQL's own errors have a SQLSTATE. A ping of a hanging server would block all threads: it holds the GIL.
        return getattr(cause, "sqlstate", None) is not None
    conninfo = make_conninfo(**get_libpq_parameters(database))
    return pq.PGconn.ping(conninfo.encode()) == pq.Ping.OK


readiness = Readiness(check_database)
