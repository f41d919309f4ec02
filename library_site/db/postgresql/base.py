"""Django's backend for PostgreSQL, whose requests do not wait for a server that hangs (`library_site.db.hangs`).

Django expects a backend in the module `base` of the package that ENGINE names.
"""

import re
import time
from datetime import UTC, datetime
from functools import cached_property
from math import inf
from types import ModuleType
from typing import Any, TypeVar, cast

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base, operations
from psycopg.abc import PQGen
from psycopg.errors import ConnectionTimeout

from library_site.db.errors import ClosingErrorWrapper
from library_site.db.hangs import server_state

Result = TypeVar("Result")

TIMEOUT_PATTERN = re.compile(r"statement[_-]timeout\s*=\s*'?(\d+)\s*(ms|s|min|h|)\b")
# What Django sets a sequence with: its call, and the maximum of the column.
SETVAL_PATTERN = re.compile(r"(.*setval\((.+?\)).*?(max\(.+?\)).*);")
RAISE_ONLY = r"\1 HAVING \3 > coalesce(pg_sequence_last_value(\2), 0);"
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


class DatabaseOperations(operations.DatabaseOperations):
    """Knows columns of times without a time zone. They are in UTC, as on SQLite, and so is the session."""

    def get_db_converters(self, expression: Any) -> Any:
        is_time = expression.output_field.get_internal_type() == "DateTimeField"
        return [*super().get_db_converters(expression), *([make_aware] if is_time else [])]

    def _convert_sql_to_tz(self, sql: str, params: Any, tzname: str | None) -> Any:
        return cast("Any", super())._convert_sql_to_tz(f"({sql})::timestamptz" if tzname else sql, params, tzname)

    def sequence_reset_sql(self, style: Any, model_list: Any) -> list[str]:
        """Lowers no sequence, as Django's statements of `loaddata` would: no id of a deleted row is given again."""
        statements = super().sequence_reset_sql(style, model_list)
        return [SETVAL_PATTERN.sub(RAISE_ONLY, statement) for statement in statements]


def make_aware(value: datetime | None, *_: object) -> datetime | None:
    return value.replace(tzinfo=UTC) if value and value.tzinfo is None else value


class DatabaseWrapper(base.DatabaseWrapper):
    """Watches the connections of requests. Workers and commands wait for as long as it takes."""

    Database = driver
    ops_class = DatabaseOperations

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
        connection.limit = parse_statement_timeout(conn_params.get("options", ""))
        server_state.record_connection()
        return connection

    def init_connection_state(self) -> None:
        """psycopg reads times of this style alone. A pooler passes this parameter on, and remembers it."""
        super().init_connection_state()
        if not self.connection.info.parameter_status("DateStyle").startswith("ISO"):
            self.connection.execute("SET DateStyle = ISO")


def parse_statement_timeout(options: str) -> float:
    """Returns the seconds of the last `statement_timeout` in the options of a connection, `inf` for none or 0."""
    matches = TIMEOUT_PATTERN.findall(options)
    seconds = float(matches[-1][0]) * SECONDS_BY_UNIT[matches[-1][1]] if matches else 0
    return seconds or inf
