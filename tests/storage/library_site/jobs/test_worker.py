"""What loops of workers do with a connection that failed."""

from typing import NoReturn

import pytest
from django.db import InterfaceError, InternalError, OperationalError, connection

from library_site.jobs.worker import call_reconnecting


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [InterfaceError(), InternalError(), OperationalError()])
def test_the_next_call_has_a_new_connection(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> NoReturn:
        raise error

    connection.ensure_connection()
    lost = connection.connection
    with pytest.raises(type(error)):
        call_reconnecting(fail)
    connection.ensure_connection()
    assert connection.connection is not lost
    assert caplog.messages == [f"The database did not answer: {type(error).__name__}"]


@pytest.mark.django_db(transaction=True)
def test_an_error_of_the_work_keeps_the_connection() -> None:
    connection.ensure_connection()
    connected = connection.connection
    with pytest.raises(ZeroDivisionError):
        call_reconnecting(lambda: 1 / 0)
    assert connection.connection is connected
