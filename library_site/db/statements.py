"""Wraps every statement, whether Django sends it or a PreparedStatement does.

Nothing is wrapped unless `wrap_statements` was called before the first connection.
"""

from collections.abc import Callable
from threading import local
from time import perf_counter
from typing import Any, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

# Django's form (`connection.execute_wrapper`): called with execute, sql, params, many and context.
StatementWrapper = Callable[..., Any]
statement_wrappers: list[StatementWrapper] = []
Result = TypeVar("Result")


class StatementTotals(local):
    """The seconds of each statement of this thread since the last `take`."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def take(self) -> tuple[int, float]:
        """Returns the number of statements and their total seconds, and resets them."""
        seconds = self.seconds
        totals = len(seconds), sum(seconds)
        seconds.clear()
        return totals


statement_totals = StatementTotals()


def wrap_statements(wrapper: StatementWrapper) -> None:
    """Adds a wrapper for each statement of all connections that open after this call."""
    if wrapper not in statement_wrappers:
        statement_wrappers.append(wrapper)
        connection_created.connect(add_wrappers)


def add_wrappers(connection: BaseDatabaseWrapper, **_: Any) -> None:
    # Behind them may be one of a block that is open: it ends with the last wrapper.
    connection.execute_wrappers[:0] = [one for one in statement_wrappers if one not in connection.execute_wrappers]


def time_statement(execute: Callable[..., Result], *arguments: Any) -> Result:
    """A StatementWrapper that adds the seconds of a call to `statement_totals`."""
    began_at = perf_counter()
    try:
        return execute(*arguments)
    finally:
        statement_totals.seconds.append(perf_counter() - began_at)
