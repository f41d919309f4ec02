"""Runs our own SQL statements, for cases in which Django builds a statement slower than the database executes it."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import blake2b
from itertools import count
from threading import local
from typing import Any

import msgspec
import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Expression, Model, QuerySet
from psycopg import errors, generators, pq
from psycopg.adapt import Transformer

from library_site.cached_settings import cached_settings
from library_site.db.postgresql.base import WatchedConnection
from library_site.db.statements import StatementWrapper, statement_wrappers, time_statement

Row = tuple[Any, ...]
# Like Django's Now(), plus a number of seconds.
NOW_PLUS = {
    "postgresql": "STATEMENT_TIMESTAMP() + INTERVAL '{} seconds'",
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', '+{} seconds')",
}
INT8_TYPE, UNKNOWN_TYPE = 20, 0
# The wrappers of a library without tracing. It is called directly: a call in Django's form costs more than its work.
ONLY_TIMES = [time_statement]
SUCCESS_STATUSES = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
# Placeholders of Django and psycopg; `%%` stands for a percent sign.
PLACEHOLDER = re.compile("%[s%]")
# The plans of one connection. Clients choose the fields that they change. Each set of fields has its own statement,
# whose plan takes about 0.3 MB of PostgreSQL's memory.
MAX_PLANS = 50
# A migration changed the table, or a pooler chose another server connection. Nothing was executed.
LOST_PLAN_ERRORS = (errors.FeatureNotSupported, errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
# With a thousand texts in the statement PostgreSQL plans for ten times as long as it reads, and in a new table it
# expects all rows to match. It estimates nothing from a parameter inside a subquery.
IS_ONE_OF = {"postgresql": "= ANY((SELECT %s::text[])::text[])", "sqlite": "IN (SELECT value FROM json_each(%s))"}
UNIX_TIME_SQL = {
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400",
}


class ConnectionCache:
    """The names of the statements that a connection has prepared, the oldest first, and the transformer that loads its
    rows.
    """

    def __init__(self, raw: WatchedConnection) -> None:
        self.raw = raw
        self.names: dict[bytes, None] = {}
        self.transformer = Transformer(raw)

    def prepare(self, statement: "PreparedStatement", parameters: Sequence[Any]) -> None:
        """Prepares a statement in PostgreSQL. Beyond MAX_PLANS it deallocates the oldest one first."""
        libpq = self.raw.pgconn
        if len(self.names) >= MAX_PLANS:
            oldest = next(iter(self.names))
            del self.names[oldest]
            # The result is not checked: a pooler may have chosen another server connection, without this statement.
            libpq.send_query(b'DEALLOCATE "%b"' % oldest)
            self.fetch_result()
        libpq.send_prepare(statement.name, statement.numbered, get_parameter_types(parameters))
        check_result(libpq, self.fetch_result())
        self.names[statement.name] = None

    def fetch_result(self) -> pq.abc.PGresult:
        """Waits for the statement that was sent. Raises psycopg's errors."""
        results: list[pq.abc.PGresult] = self.raw.wait(generators.execute(self.raw.pgconn))
        return results[0]


class ThreadConnection(local):
    """The connection of this thread: `database` is Django's. To look it up in `connections` takes a microsecond."""

    def __init__(self) -> None:
        self.database = connections[DEFAULT_DB_ALIAS]
        self.cache: ConnectionCache | None = None

    def get_cache(self, raw: WatchedConnection) -> ConnectionCache:
        """Returns the cache of psycopg's connection. Django opens a new connection if the old one is lost."""
        if self.cache is None or self.cache.raw is not raw:
            self.cache = ConnectionCache(raw)
        return self.cache


thread_connection = ThreadConnection()


def now_plus(seconds: int) -> str:
    return NOW_PLUS[connection.vendor].format(seconds)


def id_list(pks: Iterable[int]) -> str:
    """Returns ids as SQL text, because many parameters are slow in the driver."""
    return ", ".join(map(str, pks)) or "NULL"


def fetch_by_texts(statement: str, texts: Collection[str]) -> list[Row]:
    """Returns the rows of a statement with `{}` for the condition that a text is one of these."""
    parameter = [*texts] if connection.vendor == "postgresql" else json.dumps([*texts])
    return fetch_all(statement.format(IS_ONE_OF[connection.vendor]), [parameter]) if texts else []


def fetch_all(statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[Row] = cursor.fetchall()
        return rows


@cache
def get_column_types(model: type[Model], names: tuple[str, ...]) -> Mapping[str, str]:
    """Returns columns with their types, without a length: a cast with a length cuts longer texts."""
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    return {field.column: str(field.db_type(connection)).partition("(")[0] for field in fields}


def build_source(types: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> tuple[str, list[Any]]:
    """Returns a SELECT of rows with these columns, and its parameters.

    PostgreSQL gets one parameter: thousands take Python six times as long.
    """
    if connection.vendor == "sqlite":
        columns = ", ".join(f"column{number} AS {name}" for number, name in enumerate(types, 1))
        places = ", ".join([f"({', '.join(['%s'] * len(types))})"] * len(rows))
        # An ON CONFLICT after it needs the condition (SQLite, UPSERT, 2.2).
        return f"SELECT {columns} FROM (VALUES {places}) WHERE true", [value for row in rows for value in row]  # noqa: S608
    objects = [dict(zip(types, row, strict=True)) for row in rows]
    for name in [name for name, type in types.items() if type == "jsonb"]:
        for values in objects:
            # It is JSON already.
            values[name] = values[name] and msgspec.Raw(values[name].encode())
    typed = ", ".join(f"{name} {type}" for name, type in types.items())
    sql = f"SELECT {', '.join(types)} FROM json_to_recordset(%s::json) AS source ({typed})"  # noqa: S608  # our own
    return sql, [msgspec.json.encode(objects, enc_hook=adapt_wrapped).decode()]


def adapt_wrapped(value: Any) -> Any:
    """Returns for JSON what Django has wrapped for psycopg: bytes and integers."""
    return f"\\x{value.obj.hex()}" if isinstance(value, psycopg.Binary) else int(value)


def execute(statement: str, parameters: Sequence[Any] = ()) -> int:
    """Returns the number of rows that the statement wrote."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)


class PreparedStatement:
    """Fetches rows like `fetch_all`, without the cursors of Django and psycopg, and with binary rows.

    Parameters are texts, bytes, integers, booleans, times and None. With `reuse_plan`, PostgreSQL keeps the plan
    as long as the connection: for statements whose best plan does not depend on the parameters.
    """

    def __init__(self, sql: str, reuse_plan: bool = True) -> None:
        self.sql = sql
        self.numbered = number_placeholders(sql).encode()
        self.name = blake2b(self.numbered, digest_size=16).hexdigest().encode() if reuse_plan else b""

    def fetch_all(self, parameters: Sequence[Any] = ()) -> list[Row]:
        database = thread_connection.database
        raw = find_raw_connection(database)
        if not raw:
            adapt = database.ops.adapt_datetimefield_value
            return fetch_all(self.sql, [adapt(value) if isinstance(value, datetime) else value for value in parameters])
        cache = thread_connection.get_cache(raw)
        try:
            result = self.send_observed(cache, parameters)
        except psycopg.Error:
            with database.wrap_database_errors:
                raise
        cache.transformer.set_pgresult(result)
        return cache.transformer.load_rows(0, result.ntuples, tuple)

    def send_observed(self, cache: ConnectionCache, parameters: Sequence[Any]) -> pq.abc.PGresult:
        if not statement_wrappers:
            return self.send(cache, parameters)
        if statement_wrappers == ONLY_TIMES:
            return time_statement(self.send, cache, parameters)
        execute: StatementWrapper = partial(self.send_wrapped, cache)
        for wrapper in reversed(statement_wrappers):
            execute = partial(wrapper, execute)
        result: pq.abc.PGresult = execute(self.sql, parameters, False, {"connection": thread_connection.database})  # noqa: FBT003  # Django's form
        return result

    def send_wrapped(self, cache: ConnectionCache, sql: str, parameters: Sequence[Any], *_: object) -> pq.abc.PGresult:
        """Has Django's form of a function that executes a statement."""
        return self.send(cache, parameters)

    def send(self, cache: ConnectionCache, parameters: Sequence[Any]) -> pq.abc.PGresult:
        """Raises psycopg's errors."""
        libpq = cache.raw.pgconn
        values = [encode_parameter(parameter) for parameter in parameters]
        # Inside a transaction, an invalid plan would abort it.
        if self.name and cache.raw.autocommit:
            try:
                if self.name not in cache.names:
                    cache.prepare(self, parameters)
                libpq.send_query_prepared(self.name, values, result_format=pq.Format.BINARY)
                return check_result(libpq, cache.fetch_result())
            except LOST_PLAN_ERRORS:
                cache.names.pop(self.name, None)
        types = get_parameter_types(parameters)
        libpq.send_query_params(self.numbered, values, types, result_format=pq.Format.BINARY)
        return check_result(libpq, cache.fetch_result())


class SQLCondition(Expression):
    """A condition in SQL, with the alias of its table in braces. Django would take longer to build it from lookups."""

    output_field = BooleanField()

    def __init__(self, alias: str, sql: str, parameters: Sequence[Any]) -> None:
        super().__init__()
        self.alias, self.sql, self.parameters = alias, sql, tuple(parameters)

    def resolve_expression(self, *_: Any, **__: Any) -> "SQLCondition":
        return self

    def relabeled_clone(self, change_map: Mapping[str, str]) -> "SQLCondition":
        clone = copy(self)
        clone.alias = change_map.get(self.alias, self.alias)
        return clone

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        return self.sql.format(self.alias), self.parameters


class Parameter(Expression):
    """A placeholder in a queryset. Each call of its CompiledQuery passes the value."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        return "%s", [self]


class CompiledQuery:
    """The statement of `QuerySet.values()`. Django compiles it once, because that can take longer than to run it."""

    def __init__(self, rows: QuerySet[Any, Any]) -> None:
        sql, parameters = rows.query.sql_with_params()
        self.parameters = [parameter.name for parameter in parameters if isinstance(parameter, Parameter)]
        self.columns = tuple(rows.query.selected or ())
        self.statement = PreparedStatement(write_literals(sql, parameters))

    def fetch_all(self, **values: Any) -> list[dict[str, Any]]:
        """Takes a value for each Parameter. Values in rows are those of the driver: SQLite has no times or booleans."""
        rows = self.statement.fetch_all([values[name] for name in self.parameters])
        return [dict(zip(self.columns, row, strict=True)) for row in rows]

    def fetch_joined(
        self, statement: PreparedStatement, parameters: Sequence[Any], **values: Any
    ) -> tuple[dict[str, Any] | None, list[Row]]:
        """Fetches the row of this query, which has one at most, and the rows of a statement, in one round trip.

        The first column of the statement must not be nullable. Without a row of this query there are no rows.
        """
        own_parameters = [values[name] for name in self.parameters]
        rows = join_statements(self.statement, statement).fetch_all([*own_parameters, *parameters])
        width = len(self.columns)
        own_row = dict(zip(self.columns, rows[0][:width], strict=True)) if rows else None
        return own_row, [row[width:] for row in rows if row[width] is not None]


@cache
def join_statements(first: PreparedStatement, second: PreparedStatement) -> PreparedStatement:
    """Returns a statement that has each row of the first one beside all rows of the second, or beside nulls."""
    joined = f"SELECT own.*, other.* FROM ({first.sql}) AS own LEFT JOIN ({second.sql}) AS other ON true"  # noqa: S608  # our own SQL
    return PreparedStatement(joined, reuse_plan=bool(second.name))


def write_literals(sql: str, parameters: Iterable[Any]) -> str:
    """Returns a statement with our own constants in its text, where SQLite plans only once for LIKE."""
    literals = iter([None if isinstance(value, Parameter) else quote_literal(value) for value in parameters])
    return PLACEHOLDER.sub(lambda match: match[0] if match[0] == "%%" else next(literals) or "%s", sql)


def quote_literal(value: str | int) -> str:
    """Returns a constant of ours as SQL, ready to be part of a statement with placeholders."""
    return str(int(value)) if isinstance(value, int) else "'{}'".format(value.replace("'", "''").replace("%", "%%"))


def get_parameter_types(parameters: Sequence[Any]) -> list[int]:
    """Declares integers as bigint: PostgreSQL would give them the type of the column, which can be too small."""
    return [
        INT8_TYPE if isinstance(parameter, int) and not isinstance(parameter, bool) else UNKNOWN_TYPE
        for parameter in parameters
    ]


def find_raw_connection(database: BaseDatabaseWrapper) -> WatchedConnection | None:
    """Returns psycopg's connection; None where Django must see the statement, or psycopg must begin a transaction."""
    if (
        database.vendor != "postgresql"
        or not cached_settings.COMPILED_PATH
        # Written out: `queries_logged` is a property.
        or database.force_debug_cursor
        or cached_settings.DEBUG
        or has_foreign_wrapper(database)
    ):
        return None
    if database.connection is None:
        database.ensure_connection()
    raw: WatchedConnection = database.connection
    is_usable = raw.autocommit or raw.pgconn.transaction_status == pq.TransactionStatus.INTRANS
    return raw if is_usable else None


def check_result(libpq: pq.abc.PGconn, result: pq.abc.PGresult) -> pq.abc.PGresult:
    """Raises psycopg's error for a statement that failed."""
    if result.status in SUCCESS_STATUSES:
        return result
    # An error without a code comes from libpq: PostgreSQL did not answer.
    if libpq.status == pq.ConnStatus.BAD or not result.error_field(pq.DiagnosticField.SQLSTATE):
        raise psycopg.OperationalError("the connection is lost")
    raise errors.error_from_result(result)


def number_placeholders(sql: str) -> str:
    """Replaces the placeholders by PostgreSQL's own: $1, $2 and so on."""
    numbers = count(1)
    return PLACEHOLDER.sub(lambda match: "%" if match[0] == "%%" else f"${next(numbers)}", sql)


def encode_parameter(value: Any) -> bytes | None:
    """Encodes in PostgreSQL's text format. Raises psycopg.DataError for a NUL: libpq would cut the text there."""
    if value is None:
        return None
    if not isinstance(value, str):
        return b"\\x" + value.hex().encode() if isinstance(value, bytes) else str(value).encode()
    if "\0" in value:
        raise psycopg.DataError("PostgreSQL text cannot contain NUL")
    return value.encode()


def get_database_time() -> datetime:
    [(seconds,)] = fetch_all(UNIX_TIME_SQL[connection.vendor], [])
    return datetime.fromtimestamp(float(seconds), UTC)


def has_foreign_wrapper(database: BaseDatabaseWrapper) -> bool:
    """Tells whether there are wrappers of others, which must see all statements through Django's cursor."""
    return bool(database.execute_wrappers) and database.execute_wrappers != statement_wrappers
