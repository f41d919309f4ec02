"""For statements of our own, where Django's take longer to put together than to carry out."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
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
FROM_NOW = {
    "postgresql": "STATEMENT_TIMESTAMP() + INTERVAL '{} seconds'",
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', '+{} seconds')",
}
INT8, UNKNOWN = 20, 0
# A migration changed the table meanwhile, or a pooler gave another connection: nothing was carried out.
NO_PLAN = (errors.FeatureNotSupported, errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)


class Kept:
    """What lasts as long as a connection: the names of the statements that PostgreSQL has, and what reads its rows."""

    def __init__(self, direct: psycopg.Connection) -> None:
        self.direct = direct
        self.names: set[bytes] = set()
        self.transformer = Transformer(direct)


# By Django's connection, which outlasts those to PostgreSQL.
kept: WeakKeyDictionary[BaseDatabaseWrapper, Kept] = WeakKeyDictionary()


def from_now(seconds: int) -> str:
    return FROM_NOW[connection.vendor].format(seconds)


def among(pks: Iterable[int]) -> str:
    """In place of parameters, of which many take a driver long."""
    return ", ".join(map(str, pks)) or "NULL"


def asked(statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[Row] = cursor.fetchall()
        return rows


def carried_out(statement: str, parameters: Sequence[Any] = ()) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


class Statement:
    """Asked as `asked` does, past Django's cursors and psycopg's: one call of libpq, and rows in binary form.

    Its parameters are texts, bytes, integers, booleans, naive times and None. Where `planned_once`, PostgreSQL keeps
    its plan as long as the connection lasts: for statements to which their parameters make no difference.
    """

    def __init__(self, sql: str, planned_once: bool = True) -> None:
        self.sql = sql
        self.numbered = numbered(sql).encode()
        self.name = blake2b(self.numbered, digest_size=16).hexdigest().encode() if planned_once else b""

    def rows(self, parameters: Sequence[Any] = ()) -> list[Row]:
        database = connections[DEFAULT_DB_ALIAS]
        direct = directly(database)
        if not direct:
            return asked(self.sql, parameters)
        lasting = kept.get(database)
        if not lasting or lasting.direct is not direct:
            lasting = kept[database] = Kept(direct)
        with database.wrap_database_errors:
            result = self.result(lasting, parameters)
        lasting.transformer.set_pgresult(result)
        return lasting.transformer.load_rows(0, result.ntuples, tuple)

    def result(self, lasting: Kept, parameters: Sequence[Any]) -> pq.abc.PGresult:
        """Raises psycopg's errors."""
        libpq = lasting.direct.pgconn
        # Typed as Sequence[bytes] in one of the two; None is NULL in both.
        values: Any = [as_sent(parameter) for parameter in parameters]
        # A plan that is no good would end a transaction.
        if self.name and lasting.direct.autocommit:
            try:
                if self.name not in lasting.names:
                    checked(libpq, libpq.prepare(self.name, self.numbered, types_of(parameters)))
                    lasting.names.add(self.name)
                return checked(libpq, libpq.exec_prepared(self.name, values, None, pq.Format.BINARY))
            except NO_PLAN:
                lasting.names.discard(self.name)
        types = types_of(parameters)
        return checked(libpq, libpq.exec_params(self.numbered, values, types, None, pq.Format.BINARY))


def types_of(parameters: Sequence[Any]) -> list[int]:
    """PostgreSQL would take an integer beside a smaller column for one as small."""
    return [
        INT8 if isinstance(parameter, int) and not isinstance(parameter, bool) else UNKNOWN for parameter in parameters
    ]


def directly(database: BaseDatabaseWrapper) -> psycopg.Connection | None:
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


def checked(libpq: pq.abc.PGconn, result: pq.abc.PGresult) -> pq.abc.PGresult:
    """Raises psycopg's error for what is none."""
    if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        return result
    if libpq.status == pq.ConnStatus.BAD:
        raise psycopg.OperationalError("the connection is lost")
    raise errors.error_from_result(result)


def numbered(sql: str) -> str:
    """With PostgreSQL's own places."""
    first, *rest = sql.split("%s")
    return "".join([first, *(f"${number}{part}" for number, part in enumerate(rest, 1))]).replace("%%", "%")


def as_sent(value: Any) -> bytes | None:
    """In PostgreSQL's text form. Raises psycopg.DataError for a NUL, at which libpq would end the text."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    sent = str(value).encode()
    if b"\0" in sent:
        raise psycopg.DataError("PostgreSQL's texts hold no NUL")
    return sent
