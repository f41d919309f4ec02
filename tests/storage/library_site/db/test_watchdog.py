"""A PostgreSQL that hangs keeps no thread: the watchdog gives up its statements, and the next ones do not wait."""

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.db import OperationalError, connection, transaction
from psycopg.errors import ConnectionTimeout
from psycopg.pq import ConnStatus
from pytest_django import Settings

from library_site.db import watchdog as module
from library_site.db.postgresql import base
from library_site.db.postgresql.base import WatchedConnection, find_statement_timeout
from library_site.db.sql import PreparedStatement, execute
from library_site.db.watchdog import GRACE, PAUSE, RETRY_INTERVAL, SUSPECT_AGE, Breaker, DatabaseHangs, Watchdog
from tests.support.database_proxy import DatabaseProxy, connect_through_proxy
from tests.support.waiting import wait_until

NOW = 1000.0
OLD = NOW - SUSPECT_AGE - 0.1
watchdog = module.watchdog


class Server:
    """Listens, and answers nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{folder}/.s.PGSQL.5432")
        self.listener.listen()
        self.sessions: list[Session] = []

    def open_session(self) -> Any:
        """Returns what stands for a connection of libpq."""
        self.sessions.append(Session(self.folder))
        return self.sessions[-1]

    def close(self) -> None:
        self.listener.close()
        for session in self.sessions:
            session.own_end.close()
            session.other_end.close()


class Session:
    """What the watchdog knows of libpq's connections."""

    status = ConnStatus.OK
    hostaddr, port = b"", b"5432"

    def __init__(self, folder: Path) -> None:
        self.host = str(folder).encode()
        self.own_end, self.other_end = socket.socketpair()

    @property
    def socket(self) -> int:
        return self.own_end.fileno()

    def is_shut_down(self) -> bool:
        self.other_end.settimeout(0)
        try:
            return self.other_end.recv(1) == b""
        except BlockingIOError:
            return False


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(module, "PROBE_TIMEOUT", 0.01)
    with closing(Server(tmp_path)) as server:
        yield server


def add_session(dog: Watchdog, server: Server, began_at: float, limit: float = inf) -> Any:
    session = server.open_session()
    dog.statements[session] = began_at, limit
    return session


def test_a_server_that_does_not_answer_loses_all_its_statements(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    dog = Watchdog()
    sessions = [add_session(dog, server, began_at) for began_at in (OLD, NOW)]
    dog.look(NOW)
    assert [session.is_shut_down() for session in sessions] == [True, True]
    assert dog.statements == {}
    assert caplog.messages == ["PostgreSQL hangs: 2 statements are given up."]
    with pytest.raises(DatabaseHangs):
        dog.begin(sessions[0], inf)
    with pytest.raises(DatabaseHangs):
        dog.connection_breaker.require_try(time.monotonic())
    assert dog.statements == {}


def test_a_server_that_answers_keeps_its_statements(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBE_TIMEOUT", 30)
    dog = Watchdog()
    session = add_session(dog, server, OLD)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(answer_probe, server)
        dog.look(NOW)
    assert not session.is_shut_down()
    dog.begin(session, inf)


def answer_probe(server: Server) -> None:
    client, _ = server.listener.accept()
    with client:
        assert client.recv(100) == module.SSL_REQUEST
        client.sendall(b"N")


def test_only_an_old_statement_is_a_reason_to_ask(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def answer(*address: Any) -> bool:
        asked.append(address)
        return True

    monkeypatch.setattr(module, "is_answering", answer)
    dog = Watchdog()
    session = add_session(dog, server, NOW)
    dog.look(NOW + SUSPECT_AGE - 0.1)
    assert asked == []
    for _ in range(2):
        dog.look(time.monotonic() if dog.probed_at > 0 else NOW + SUSPECT_AGE + 0.1)
    assert asked == [(str(server.folder), 5432)]
    assert not session.is_shut_down()


def test_a_statement_far_beyond_its_limit_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_answering", lambda *_: True)
    dog = Watchdog()
    late, patient, slow = (add_session(dog, server, NOW, limit) for limit in (5, inf, 5.2))
    dog.look(NOW + 5 + GRACE + 0.1)
    assert [session.is_shut_down() for session in (late, patient, slow)] == [True, False, False]


def test_who_waited_for_a_thread_does_not_wait_for_the_same_sessions(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    dog = Watchdog()
    paused: list[bool] = []
    monkeypatch.setattr(module, "is_answering", lambda *_: True)
    monkeypatch.setattr(module, "shut_down", lambda _: paused.append(time.monotonic() < dog.paused_until))
    other = add_session(dog, server, NOW)
    dog.look(NOW + 5 + GRACE + 0.1)
    dog.require_no_pause(time.monotonic())
    add_session(dog, server, NOW, 5)
    dog.look(NOW + 5 + GRACE + 0.1)
    assert paused == [True]
    # Neither what ends well nor a new connection ends the pause: reads go on while writes wait for locks.
    dog.end(other)
    dog.record_connection()
    with pytest.raises(DatabaseHangs):
        dog.begin(other, inf)
    assert dog.statements == {}
    assert 0 < dog.paused_until - time.monotonic() <= PAUSE
    dog.paused_until = time.monotonic()
    dog.begin(other, inf)


def test_a_server_that_is_gone_does_not_hang(server: Server) -> None:
    server.listener.close()
    assert module.is_answering(str(server.folder), 5432)
    assert module.is_answering("127.0.0.1", 9)
    assert module.is_answering("::1", 9)


def test_a_server_with_a_full_queue_hangs(server: Server) -> None:
    server.listener.listen(0)
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(f"{server.folder}/.s.PGSQL.5432")
        assert not module.is_answering(str(server.folder), 5432)


def test_a_socket_that_libpq_has_closed_is_left_alone(server: Server) -> None:
    session = server.open_session()
    numbers = iter([session.socket, -1])
    module.shut_down(type("Closed", (), {"socket": property(lambda _: next(numbers))})())
    module.shut_down(SimpleNamespace(socket=-1))  # type: ignore[arg-type]  # stands for libpq's
    assert not session.is_shut_down()
    module.shut_down(session)
    assert session.is_shut_down()


def test_a_thread_goes_on_when_the_watchdog_has_left_its_socket(server: Server) -> None:
    """Before, it could close the socket, and another thread could get its number."""
    dog = Watchdog()
    session = server.open_session()
    with ThreadPoolExecutor(1) as pool:
        with dog.lock:
            ending = pool.submit(dog.end, session)
            with pytest.raises(TimeoutError):
                ending.result(0.01)
        ending.result(30)


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


def test_no_statement_slips_through_while_a_hang_is_recorded(server: Server) -> None:
    """The hang opens the breaker and then gives up what it finds, so a statement is found or finds the breaker."""
    dog, found = Watchdog(), []

    class Witness(Breaker):
        @property
        def next_try(self) -> None:
            found.append([*dog.statements])

        @next_try.setter
        def next_try(self, value: float | None) -> None: ...

    dog.statement_breaker = Witness()
    session = server.open_session()
    dog.begin(session, inf)
    assert found == [[session]]


@pytest.mark.parametrize(("status", "is_open"), [(ConnStatus.OK, False), (ConnStatus.BAD, True)])
def test_an_answer_ends_the_hang(server: Server, status: ConnStatus, is_open: bool) -> None:
    dog = Watchdog()
    session = server.open_session()
    dog.statement_breaker.open(NOW)
    dog.begin(session, inf)
    session.status = status
    dog.end(session)
    assert (dog.statement_breaker.next_try is not None) == is_open


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ("", inf),
        ("-c lock_timeout=2s", inf),
        ("-c lock_timeout=2s -c statement_timeout=5s", 5),
        ("-c statement_timeout=5s -c statement_timeout=90000", 90),
        ("-c statement_timeout=5s --statement-timeout=2min", 120),
        ("-c statement_timeout=5s -c statement_timeout=0", inf),
        ("-c statement_timeout=1500ms", 1.5),
        ("-c statement_timeout=1h", 3600),
        ("-c idle_in_transaction_session_timeout=60s", inf),
    ],
)
def test_the_limit_is_that_of_the_connection(options: str, seconds: float) -> None:
    assert find_statement_timeout(options) == seconds


# On PostgreSQL

postgresql_alone = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no server that could hang")


@pytest.fixture
def proxy(transactional_db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[DatabaseProxy]:
    """Stands between the database and this process, which has the connections of a web process."""
    settings.LIBRARY_PROCESS = "web"
    monkeypatch.setattr(module, "PROBE_TIMEOUT", 0.01)
    # The test itself looks, and no thread that an earlier test has started: it could be first.
    watchdog.stop()
    monkeypatch.setattr(watchdog, "start", lambda: None)
    with connect_through_proxy() as proxy:
        connection.ensure_connection()
        yield proxy
        watchdog.record_connection()
        watchdog.paused_until = -inf


def look_at_hang(statements: int = 1) -> None:
    wait_until(lambda: len(watchdog.statements) == statements)
    watchdog.look(time.monotonic() + SUSPECT_AGE + 0.1)


def commit() -> None:
    with transaction.atomic():
        connection.cursor().execute("SELECT 1")


STATEMENTS: dict[str, Callable[[], object]] = {
    "Django's": lambda: execute("SELECT 1"),
    "prepared": PreparedStatement("SELECT 1").fetch_all,
    "transaction": commit,
}


@postgresql_alone
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_of_a_server_that_hangs_fails(proxy: DatabaseProxy, name: str) -> None:
    with ThreadPoolExecutor(1) as pool, proxy.fall_silent():
        looking = pool.submit(look_at_hang)
        with pytest.raises(OperationalError):
            STATEMENTS[name]()
        looking.result()
        connection.close()
        for statement in STATEMENTS.values():
            with pytest.raises(OperationalError) as refusal:
                statement()
            assert isinstance(refusal.value.__cause__, DatabaseHangs)
    # As if time had passed.
    watchdog.connection_breaker.open(time.monotonic() - RETRY_INTERVAL)
    STATEMENTS[name]()
    assert watchdog.statement_breaker.next_try is None


@postgresql_alone
def test_a_commit_of_a_server_that_hangs_fails(proxy: DatabaseProxy) -> None:
    """The server falls silent after the statements of the transaction."""

    def look_at_commit() -> None:
        wait_until(lambda: not proxy.is_passing.is_set())
        try:
            look_at_hang()
        finally:
            proxy.is_passing.set()

    proxy.call_before(b"COMMIT", proxy.is_passing.clear)
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look_at_commit)
        with pytest.raises(OperationalError):
            commit()
        looking.result()


@postgresql_alone
def test_a_request_of_a_server_that_hangs_is_answered(proxy: DatabaseProxy, application: Any) -> None:
    with httpx.Client(transport=httpx.WSGITransport(app=application), base_url="http://127.0.0.1") as client:
        with ThreadPoolExecutor(1) as pool, proxy.fall_silent():
            looking = pool.submit(look_at_hang)
            answers = [client.get("/api/v2/books/1") for _ in range(2)]
            looking.result()
        assert [(answer.status_code, answer.headers["Retry-After"]) for answer in answers] == [(503, "1")] * 2


@postgresql_alone
def test_a_slow_statement_of_a_server_that_answers_goes_on(
    proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROBE_TIMEOUT", 30)
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look_at_hang)
        execute("SELECT pg_sleep(1)")
        looking.result()
    assert watchdog.statement_breaker.next_try is None


@postgresql_alone
def test_a_session_that_hangs_alone_is_given_up(proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_answering", lambda *_: True)
    connection.connection.limit = -SUSPECT_AGE - GRACE
    session = connection.connection.info.backend_pid
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look_at_hang)
        with pytest.raises(OperationalError):
            execute("SELECT pg_sleep(20)")
        looking.result()
    connection.close()
    with pytest.raises(OperationalError) as refusal:
        connection.ensure_connection()
    assert isinstance(refusal.value.__cause__, DatabaseHangs)
    watchdog.paused_until = -inf
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
    watchdog.connection_breaker.open(time.monotonic() - RETRY_INTERVAL)
    connection.ensure_connection()
    assert watchdog.connection_breaker.next_try is None


@postgresql_alone
def test_nobody_connects_to_a_server_that_kept_no_limit(proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    watchdog.paused_until = inf
    with monkeypatch.context() as patch:
        patch.setattr(base.driver, "connect", lambda **_: pytest.fail("It connects."))
        with pytest.raises(OperationalError) as refusal:
            connection.ensure_connection()
    assert isinstance(refusal.value.__cause__, DatabaseHangs)


@postgresql_alone
@pytest.mark.parametrize("process", ["worker", "command"])
def test_only_requests_are_watched(transactional_db: None, settings: Settings, process: str) -> None:
    settings.LIBRARY_PROCESS = process
    connection.close()
    connection.ensure_connection()
    assert connection.connection.limit is None


@postgresql_alone
def test_the_limit_follows_from_the_settings(proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "options", "-c statement_timeout=7s")
    connection.close()
    connection.ensure_connection()
    assert connection.connection.limit == 7


def test_a_process_has_one_watchdog() -> None:
    dog = Watchdog()
    dog.look_regularly = lambda: wait_until(lambda: dog.probed_at == 0)  # type: ignore[method-assign]
    dog.start()
    thread = dog.thread
    assert thread
    dog.start()
    assert (dog.thread, thread.daemon) == (thread, True)
    dog.probed_at = 0
    thread.join()
    dog.start()
    assert dog.thread is not thread


def test_a_watchdog_that_was_stopped_starts_again() -> None:
    dog = Watchdog()
    dog.stop()
    for _ in range(2):
        dog.start()
        thread = dog.thread
        assert thread
        assert thread.is_alive()
        dog.stop()
        assert not thread.is_alive()


def test_the_watchdog_outlives_a_failure(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    failures: Iterator[BaseException] = iter([ValueError(), SystemExit()])

    def fail(_: float) -> None:
        raise next(failures)

    monkeypatch.setattr(module, "LOOK_INTERVAL", 0)
    dog = Watchdog()
    monkeypatch.setattr(dog, "look", fail)
    with pytest.raises(SystemExit):
        dog.look_regularly()
    assert caplog.messages == ["The watchdog of the database failed."]
