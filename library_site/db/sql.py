"""For statements of our own, where Django's take longer to put together than to carry out."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import errors, pq
from psycopg.adapt import Transformer

Row = tuple[Any, ...]
# As Django's Now(), so many seconds from now.
NOW_PLUS = {
    "postgresql": "STATEMENT_TIMESTAMP() + INTERVAL '{} seconds'",
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', '+{} seconds')",
}
INT8_TYPE, UNKNOWN_TYPE = 20, 0
# Of Django and psycopg; `%%` stands for a percent sign.
PLACEHOLDER = re.compile("%[s%]")
# A migration changed the table meanwhile, or a pooler gave another connection: nothing was carried out.
LOST_PLAN_ERRORS = (errors.FeatureNotSupported, errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
UNIX_TIME_SQL = {
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400",
}


class ConnectionCache:
    """What lasts as long as a connection: the names of the statements that PostgreSQL has, and what reads its rows."""

    def __init__(self, direct: psycopg.Connection) -> None:
        self.direct = direct
        self.names: set[bytes] = set()
        self.transformer = Transformer(direct)


# By Django's connection, which outlasts those to PostgreSQL.
connection_caches: WeakKeyDictionary[BaseDatabaseWrapper, ConnectionCache] = WeakKeyDictionary()


def now_plus(seconds: int) -> str:
    return NOW_PLUS[connection.vendor].format(seconds)


def id_list(pks: Iterable[int]) -> str:
    """In place of parameters, of which many take a driver long."""
    return ", ".join(map(str, pks)) or "NULL"


def fetch_all(statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[Row] = cursor.fetchall()
        return rows


def execute(statement: str, parameters: Sequence[Any] = ()) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


class PreparedStatement:
    """Asked as `asked` does, past Django's cursors and psycopg's: one call of libpq, and rows in binary form.

    Its parameters are texts, bytes, integers, booleans, naive times and None. Where `keep_plan`, PostgreSQL keeps
    its plan as long as the connection lasts: for statements to which their parameters make no difference.
    """

    def __init__(self, sql: str, keep_plan: bool = True) -> None:
        self.sql = sql
        self.numbered = number_placeholders(sql).encode()
        self.name = blake2b(self.numbered, digest_size=16).hexdigest().encode() if keep_plan else b""

    def fetch_all(self, parameters: Sequence[Any] = ()) -> list[Row]:
        database = connections[DEFAULT_DB_ALIAS]
        direct = raw_connection(database)
        if not direct:
            return fetch_all(self.sql, parameters)
        lasting = connection_caches.get(database)
        if not lasting or lasting.direct is not direct:
            lasting = connection_caches[database] = ConnectionCache(direct)
        with database.wrap_database_errors:
            result = self.send(lasting, parameters)
        lasting.transformer.set_pgresult(result)
        return lasting.transformer.load_rows(0, result.ntuples, tuple)

    def send(self, lasting: ConnectionCache, parameters: Sequence[Any]) -> pq.abc.PGresult:
        """Raises psycopg's errors."""
        libpq = lasting.direct.pgconn
        # Typed as Sequence[bytes] in one of the two; None is NULL in both.
        values: Any = [encode_parameter(parameter) for parameter in parameters]
        # A plan that is no good would end a transaction.
        if self.name and lasting.direct.autocommit:
            try:
                if self.name not in lasting.names:
                    check_result(libpq, libpq.prepare(self.name, self.numbered, parameter_types(parameters)))
                    lasting.names.add(self.name)
                return check_result(libpq, libpq.exec_prepared(self.name, values, None, pq.Format.BINARY))
            except LOST_PLAN_ERRORS:
                lasting.names.discard(self.name)
        types = parameter_types(parameters)
        return check_result(libpq, libpq.exec_params(self.numbered, values, types, None, pq.Format.BINARY))


def parameter_types(parameters: Sequence[Any]) -> list[int]:
    """PostgreSQL would take an integer beside a smaller column for one as small."""
    return [
        INT8_TYPE if isinstance(parameter, int) and not isinstance(parameter, bool) else UNKNOWN_TYPE
        for parameter in parameters
    ]


def raw_connection(database: BaseDatabaseWrapper) -> psycopg.Connection | None:
    """PostgreSQL's connection, but where Django looks at statements, or psycopg is yet to begin a transaction."""
    if (
        database.vendor != "postgresql"
        or not settings.COMPILED_PATH
        or database.queries_logged
        or database.execute_wrappers
    ):
        return None
    if database.connection is None:
        database.ensure_connection()
    direct: psycopg.Connection = database.connection
    begun = direct.autocommit or direct.pgconn.transaction_status == pq.TransactionStatus.INTRANS
    return direct if begun else None


def check_result(libpq: pq.abc.PGconn, result: pq.abc.PGresult) -> pq.abc.PGresult:
    """Raises psycopg's error for a statement that failed."""
    if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        return result
    # An error without a code is libpq's own: PostgreSQL never answered.
    if libpq.status == pq.ConnStatus.BAD or not result.error_field(pq.DiagnosticField.SQLSTATE):
        raise psycopg.OperationalError("the connection is lost")
    raise errors.error_from_result(result)


def number_placeholders(sql: str) -> str:
    """With PostgreSQL's own places."""
    numbers = count(1)
    return PLACEHOLDER.sub(lambda found: "%" if found[0] == "%%" else f"${next(numbers)}", sql)


def encode_parameter(value: Any) -> bytes | None:
    """In PostgreSQL's text form. Raises psycopg.DataError for a NUL, at which libpq would end the text."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    sent = str(value).encode()
    if b"\0" in sent:
        raise psycopg.DataError("PostgreSQL's texts hold no NUL")
    return sent


def get_database_time() -> datetime:
    [(seconds,)] = fetch_all(UNIX_TIME_SQL[connection.vendor], [])
    return datetime.fromtimestamp(float(seconds), UTC)
