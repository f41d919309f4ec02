"""Django's backend for PostgreSQL, whose requests do not wait for a server that hangs (`library_site.db.hangs`).

Django expects a backend in the module `base` of the package that ENGINE names.
"""

import re
import time
from functools import cached_property
from math import inf
from types import ModuleType
from typing import Any, TypeVar

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base
from psycopg.abc import PQGen
from psycopg.errors import ConnectionTimeout

from library_site.db.hangs import server_state
from library_site.db.read_only import ClosingErrorWrapper

Result = TypeVar("Result")

TIMEOUT_PATTERN = re.compile(r"statement[_-]timeout\s*=\s*'?(\d+)\s*(ms|s|min|h|)\b")
SECONDS_BY_UNIT = {"": 0.001, "ms": 0.001, "s": 1, "min": 60, "h": 3600}


class WatchedConnection(psycopg.Connection[Any]):
    """A connection whose statements do not wait for a server that hangs, if it has a limit."""

    # Seconds after which the server gives up a statement, `inf` for never; None where nobody watches.
    limit: float | None = None

    def wait(self, gen: PQGen[Result], *arguments: Any, **options: Any) -> Result:
        """psycopg waits here for whatever it sends, a COMMIT too."""
        guarded = gen if self.limit is None else server_state.guard(gen, self.pgconn, self.limit)
        return super().wait(guarded, *arguments, **options)


# Django connects with the `connect` of its driver.
driver = ModuleType(psycopg.__name__)
vars(driver).update(vars(psycopg), connect=WatchedConnection.connect)


class DatabaseWrapper(base.DatabaseWrapper):
    """Watches the connections of requests. Workers and commands wait for as long as it takes."""

    Database = driver

    @cached_property
    def wrap_database_errors(self) -> ClosingErrorWrapper:
        return ClosingErrorWrapper(self)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if settings.LIBRARY_PROCESS != "web":
            return super().get_new_connection(conn_params)
        server_state.require_connection_try()
        try:
            connection: WatchedConnection = super().get_new_connection(conn_params)
        except ConnectionTimeout:
            server_state.connection_breaker.open(time.monotonic())
            raise
        connection.limit = find_statement_timeout(conn_params.get("options", ""))
        server_state.record_connection()
        return connection

    def init_connection_state(self) -> None:
        """psycopg reads times of this style alone. A pooler passes this parameter on, and remembers it."""
        super().init_connection_state()
        if not self.connection.info.parameter_status("DateStyle").startswith("ISO"):
            self.connection.execute("SET DateStyle = ISO")


def find_statement_timeout(options: str) -> float:
    """Returns the seconds of the last `statement_timeout` in the options of a connection, `inf` for none or 0."""
    matches = TIMEOUT_PATTERN.findall(options)
    seconds = float(matches[-1][0]) * SECONDS_BY_UNIT[matches[-1][1]] if matches else 0
    return seconds or inf
