"""A PostgreSQL that hangs keeps no thread: statements are given up, and the next ones do not wait."""

import socket
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import inf
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from psycopg.errors import ConnectionTimeout
from psycopg.pq import ConnStatus
from psycopg.waiting import Ready
from pytest_django import Settings

from library_site.db import hangs
from library_site.db.hangs import (
    GRACE,
    PAUSE,
    RETRY_INTERVAL,
    SUSPECT_AGE,
    Breaker,
    DatabaseHangs,
    ServerState,
    server_state,
)
from library_site.db.postgresql import base
from library_site.db.postgresql.base import WatchedConnection, parse_statement_timeout
from library_site.db.sql import PreparedStatement, execute
from tests.support.database_proxy import DatabaseProxy, connect_through_proxy

NOW = 1000.0


class Clock:
    """Stands for the module `time`."""

    now = NOW

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(hangs, "time", clock)
    return clock


@pytest.fixture
def responses(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What the server does when it is asked: the last one is true if it answers. A question appends to the list."""
    responses: list[bool] = []

    def response(*_: object) -> bool:
        responses.append(responses[0])
        return responses[0]

    monkeypatch.setattr(hangs, "is_answering", response)
    return responses


class Session:
    """Stands for libpq's connection."""

    hostaddr, host, port = b"", b"/folder", b"5432"
    status = ConnStatus.OK

    def finish(self) -> None:
        self.status = ConnStatus.BAD


def wait_forever() -> Generator[Any, Any, None]:
    while True:
        yield


def begin(state: ServerState, session: Any, limit: float = inf) -> Any:
    """Returns a statement that waits."""
    statement = state.guard(wait_forever(), session, limit)
    next(statement)
    return statement


def has_given_up(statement: Any) -> bool:
    try:
        statement.send(Ready.NONE)
    except DatabaseHangs:
        return True
    return False


def test_a_server_that_does_not_answer_loses_all_its_statements(
    clock: Clock, responses: list[bool], caplog: pytest.LogCaptureFixture
) -> None:
    responses[:] = [False]
    state, sessions = ServerState(), [Session(), Session()]
    old = begin(state, sessions[0])
    clock.now += SUSPECT_AGE - 0.1
    assert not has_given_up(old)
    young = begin(state, sessions[1])
    clock.now += 0.2
    assert [has_given_up(old), has_given_up(young)] == [True, True]
    assert [session.status for session in sessions] == [ConnStatus.BAD] * 2
    # One question for both.
    assert len(responses) == 2
    assert caplog.messages == ["PostgreSQL hangs: its statements are given up."]
    for refuse in (lambda: begin(state, Session()), state.require_connection_try):
        with pytest.raises(DatabaseHangs):
            refuse()


def test_a_server_that_answers_keeps_its_statements(clock: Clock, responses: list[bool]) -> None:
    responses[:] = [True]
    state = ServerState()
    statements = [begin(state, Session()) for _ in range(2)]
    clock.now += SUSPECT_AGE + 0.1
    assert not any(map(has_given_up, statements))
    assert len(responses) == 2
    begin(state, Session())


def test_a_statement_far_beyond_its_limit_is_given_up(clock: Clock, responses: list[bool]) -> None:
    responses[:] = [True]
    state = ServerState()
    late, patient, slow = (begin(state, Session(), limit) for limit in (5, inf, 5.2))
    clock.now += 5 + GRACE + 0.1
    assert [has_given_up(statement) for statement in (patient, slow, late)] == [False, False, True]
    # Neither what ends well nor a new connection ends the pause: reads go on while writes wait for locks.
    state.record_response()
    state.record_connection()
    clock.now += PAUSE - 0.1
    for refuse in (lambda: begin(state, Session()), state.require_connection_try):
        with pytest.raises(DatabaseHangs):
            refuse()
    clock.now += 0.2
    begin(state, Session())


def test_a_try_goes_on_when_the_server_answers_again(clock: Clock, responses: list[bool]) -> None:
    responses[:] = [True]
    state = ServerState()
    state.record_hang(NOW - RETRY_INTERVAL)
    slow = begin(state, Session())
    clock.now += SUSPECT_AGE + 0.1
    assert not has_given_up(slow)
    with pytest.raises(DatabaseHangs):
        begin(state, Session())


def test_a_response_ends_the_hang(clock: Clock) -> None:
    for status, is_open in ((ConnStatus.OK, False), (ConnStatus.BAD, True)):
        state, session = ServerState(), Session()
        state.record_hang(NOW - RETRY_INTERVAL)
        statement: Any = state.guard(iter([1]), session, inf)  # type: ignore[arg-type]  # stands for psycopg's
        next(statement)
        session.status = status
        statement.close()
        assert (state.statement_breaker.next_try is not None, state.answered_at == NOW) == (is_open, not is_open)


def test_while_the_server_hangs_one_try_at_a_time_passes() -> None:
    breaker = Breaker()
    breaker.require_try(NOW)
    breaker.open(NOW)
    for seconds in (0, RETRY_INTERVAL - 0.1):
        with pytest.raises(DatabaseHangs):
            breaker.require_try(NOW + seconds)
    breaker.require_try(NOW + RETRY_INTERVAL)
    with pytest.raises(DatabaseHangs):
        breaker.require_try(NOW + RETRY_INTERVAL + 0.1)
    breaker.close()
    breaker.require_try(NOW)


@contextmanager
def listen(family: socket.AddressFamily, address: Any) -> Iterator[socket.socket]:
    with socket.socket(family) as listener:
        listener.settimeout(30)
        listener.bind(address)
        listener.listen(0)
        yield listener


def answer_probe(listener: socket.socket) -> None:
    client, _ = listener.accept()
    with client:
        assert client.recv(100) == hangs.SSL_REQUEST
        client.sendall(b"N")


def test_only_a_server_that_keeps_silent_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        addresses = [(folder, 5432), ("127.0.0.1", 0)]
        for family, address in ((socket.AF_UNIX, f"{folder}/.s.PGSQL.5432"), (socket.AF_INET, ("127.0.0.1", 0))):
            with listen(family, address) as listener, ThreadPoolExecutor(1) as pool:
                if family == socket.AF_INET:
                    addresses[1] = listener.getsockname()
                server = addresses[family == socket.AF_INET]
                answering = pool.submit(answer_probe, listener)
                assert hangs.is_answering(*server)
                answering.result()
                monkeypatch.setattr(hangs, "PROBE_TIMEOUT", 0.01)
                # The first question fills the queue.
                assert [hangs.is_answering(*server) for _ in range(2)] == [False, False]
                monkeypatch.undo()
        # They are gone.
        assert [hangs.is_answering(*server) for server in (*addresses, ("::1", 9))] == [True] * 3


def test_the_limit_is_that_of_the_connection() -> None:
    limits = {
        "-c lock_timeout=2s -c idle_in_transaction_session_timeout=60s": inf,
        "-c statement_timeout=5s -c statement_timeout=90000": 90,
        "-c statement_timeout=5s --statement-timeout=2min": 120,
        "-c statement_timeout=5s -c statement_timeout=0": inf,
        "-c statement_timeout=1500ms": 1.5,
        "-c statement_timeout=1h": 3600,
    }
    assert {options: parse_statement_timeout(options) for options in limits} == limits


# On PostgreSQL

postgresql_alone = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no server that could hang")


@pytest.fixture
def proxy(transactional_db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[DatabaseProxy]:
    """Stands between the database and this process, which has the connections of a web process."""
    settings.LIBRARY_PROCESS = "web"
    # Each test has a state of its own.
    vars(server_state).update(vars(ServerState()))
    monkeypatch.setattr(hangs, "PROBE_TIMEOUT", 0.01)
    monkeypatch.setattr(hangs, "SUSPECT_AGE", 0.01)
    with connect_through_proxy() as proxy:
        connection.ensure_connection()
        yield proxy
    vars(server_state).update(vars(ServerState()))


def commit() -> None:
    with transaction.atomic():
        connection.cursor().execute("SELECT 1")


STATEMENTS: dict[str, Callable[[], object]] = {
    "Django's": lambda: execute("SELECT 1"),
    "prepared": PreparedStatement("SELECT 1").fetch_all,
    "transaction": commit,
}


@postgresql_alone
def test_a_statement_of_a_server_that_hangs_fails(proxy: DatabaseProxy) -> None:
    with proxy.fall_silent():
        for statement in [*STATEMENTS.values()] * 2:
            with pytest.raises(OperationalError) as failure:
                statement()
            assert isinstance(failure.value.__cause__, DatabaseHangs)
            connection.close()
    # As if time had passed.
    server_state.connection_breaker.open(time.monotonic() - RETRY_INTERVAL)
    STATEMENTS["prepared"]()
    assert server_state.statement_breaker.next_try is None


@postgresql_alone
def test_a_commit_of_a_server_that_hangs_fails(proxy: DatabaseProxy) -> None:
    """The server falls silent after the statements of the transaction."""
    proxy.call_before(b"COMMIT", proxy.is_passing.clear)
    try:
        with pytest.raises(OperationalError) as failure:
            commit()
    finally:
        proxy.is_passing.set()
    assert isinstance(failure.value.__cause__, DatabaseHangs)


@postgresql_alone
def test_a_slow_statement_of_a_server_that_answers_goes_on(
    proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hangs, "PROBE_TIMEOUT", 30)
    asked_at = server_state.probed_at
    PreparedStatement("SELECT pg_sleep(0.3)").fetch_all()
    assert server_state.probed_at > asked_at
    assert server_state.statement_breaker.next_try is None


@postgresql_alone
def test_a_session_that_hangs_alone_is_given_up(proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hangs, "is_answering", lambda *_: True)
    connection.connection.limit = -GRACE
    session = connection.connection.info.backend_pid
    with pytest.raises(OperationalError):
        execute("SELECT pg_sleep(20)")
    connection.close()
    with monkeypatch.context() as patch:
        patch.setattr(base.driver, "connect", lambda **_: pytest.fail("It connects."))
        with pytest.raises(OperationalError) as refusal:
            connection.ensure_connection()
    assert isinstance(refusal.value.__cause__, DatabaseHangs)
    server_state.paused_until = -inf
    assert STATEMENTS["prepared"]() == [(1,)]
    execute("SELECT pg_terminate_backend(%s)", [session])


@postgresql_alone
def test_after_a_connection_timed_out_others_do_not_wait(proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    def time_out(**_: object) -> WatchedConnection:
        raise ConnectionTimeout

    connection.close()
    with monkeypatch.context() as patch:
        patch.setattr(base.driver, "connect", time_out)
        for cause in (ConnectionTimeout, DatabaseHangs):
            with pytest.raises(OperationalError) as failure:
                connection.ensure_connection()
            assert isinstance(failure.value.__cause__, cause)
    server_state.connection_breaker.open(time.monotonic() - RETRY_INTERVAL)
    connection.ensure_connection()
    assert server_state.connection_breaker.next_try is None


@postgresql_alone
def test_only_requests_have_a_limit_which_follows_from_the_settings(
    proxy: DatabaseProxy, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "options", "-c statement_timeout=7s")
    limits = {}
    for process in ("web", "worker", "command"):
        settings.LIBRARY_PROCESS = process
        connection.close()
        connection.ensure_connection()
        limits[process] = connection.connection.limit
    assert limits == {"web": 7, "worker": None, "command": None}
