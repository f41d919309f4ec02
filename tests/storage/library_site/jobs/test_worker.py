"""What loops of workers do with a connection that failed."""

from functools import partial
from typing import NoReturn

import pytest
from django.db import InterfaceError, InternalError, OperationalError, connection

from library_site.jobs.worker import call_reconnecting


@pytest.mark.django_db(transaction=True)
def test_after_a_failure_of_the_connection_the_next_call_has_a_new_one(caplog: pytest.LogCaptureFixture) -> None:
    for error in (InterfaceError(), InternalError(), OperationalError(), ZeroDivisionError()):
        connection.ensure_connection()
        before = connection.connection
        with pytest.raises(type(error)):
            call_reconnecting(partial(fail, error))
        connection.ensure_connection()
        assert (connection.connection is before) == isinstance(error, ZeroDivisionError)
    assert caplog.messages == [
        f"The database did not answer: {name}" for name in ("InterfaceError", "InternalError", "OperationalError")
    ]


def fail(error: Exception) -> NoReturn:
    raise error
