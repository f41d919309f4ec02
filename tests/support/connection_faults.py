"""Ends Django's connection to its database, or the whole worker, at statements that chance chooses."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from random import Random
from socket import SHUT_RDWR, socket
from typing import Any
from unittest.mock import patch

from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from django.db.backends.signals import connection_created
from psycopg import errors


class Killed(BaseException):
    """The worker ends here. It handles nothing more."""


class Fault(Enum):
    """What happens at a statement."""

    # The connection is lost before the database has the statement, or before it has answered.
    UNSENT = auto()
    UNANSWERED = auto()
    # It is lost after the response: whatever comes next fails, be it COPY or the end of the transaction.
    ANSWERED = auto()
    # Somebody else holds a lock, and the connection is in order.
    LOCKED = auto()
    KILLED = auto()


FAULTS = list(Fault)


class ConnectionFaults:
    """Chooses the faults of statements; the end of a transaction counts as one.

    On PostgreSQL the socket is shut down, on SQLite each statement of the connection fails from then on.
    """

    def __init__(self, random: Random, chance: float, max_count: int) -> None:
        self.random, self.chance, self.left = random, chance, max_count
        self.lost: Any = None

    def choose(self) -> Fault | None:
        if not self.left or self.random.random() > self.chance:
            return None
        self.left -= 1
        return self.random.choice(FAULTS)

    def run(self, send: Callable[[], Any]) -> Any:
        if connection.vendor == "sqlite" and self.lost is not None and self.lost is connection.connection:
            raise OperationalError("disk I/O error")
        fault = self.choose()
        if fault is Fault.KILLED:
            raise Killed
        if fault is Fault.LOCKED:
            raise OperationalError("not available") from errors.LockNotAvailable()
        if fault is Fault.UNSENT:
            self.lose()
            raise OperationalError("the connection is lost")
        result = send()
        if fault:
            self.lose()
        if fault is Fault.UNANSWERED:
            raise OperationalError("the connection is lost")
        return result

    def lose(self) -> None:
        self.lost = connection.connection
        if connection.vendor == "postgresql":
            lose_connection()

    def commit(self, commit: Callable[[], Any]) -> None:
        try:
            self.run(commit)
        except Killed:
            # Django only rolls back after errors of the database.
            connection.rollback()
            raise

    def execute(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        """Django's form of a function that executes a statement."""
        return self.run(lambda: execute(*arguments))


@contextmanager
def inject_faults(faults: ConnectionFaults) -> Iterator[None]:
    """Runs the statements of Django's connection, and the ends of its transactions, through these faults."""
    database: Any = connections[DEFAULT_DB_ALIAS]
    commit = database._commit
    with patch.object(database, "_commit", lambda: faults.commit(commit)), wrap_reconnecting(faults.execute):
        yield


@contextmanager
def wrap_reconnecting(wrapper: Callable[..., Any]) -> Iterator[None]:
    """Wraps the statements of Django's connection, and of those that it opens again, in which the library puts others.

    The wrapper has Django's form (`connection.execute_wrapper`).
    """

    def install(**_: Any) -> None:
        if wrapper not in connection.execute_wrappers:
            connection.execute_wrappers.append(wrapper)

    with patch.object(connection, "execute_wrappers", []):
        connection_created.connect(install)
        install()
        try:
            yield
        finally:
            connection_created.disconnect(install)


def lose_connection() -> None:
    """Ends the connection to PostgreSQL: the next statement fails."""
    with socket(fileno=os.dup(connection.connection.fileno())) as duplicate:
        duplicate.shutdown(SHUT_RDWR)
