"""Raises an error in threads that wait for PostgreSQL while it hangs.

PostgreSQL itself applies its time-outs: a server that is stopped or cannot be reached applies none. So a thread that
waits for a statement regularly probes whether the server still answers.
"""

import logging
import socket
import struct
import time
from collections.abc import Generator
from threading import Lock
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready

log = logging.getLogger(__name__)
Result = TypeVar("Result")

# Seconds that a statement gets beyond its limit. The server cancels it before, unless its session hangs.
GRACE = 2.0
# Seconds until a waiting statement causes a probe, for the server's reply to it, and between two probes.
# So a hang is detected in less than two seconds. Until then it can block all threads, and with them `/livez`.
SUSPECT_AGE, PROBE_TIMEOUT, PROBE_INTERVAL = 0.5, 1.0, 0.5
# Seconds without statements after one exceeded its limit and GRACE. The requests that waited for a thread in this time
# get an error: sessions that hang can hold locks, and the requests would wait for these as long again.
PAUSE = 1.0
# Seconds between two tries while the server does not answer.
RETRY_INTERVAL = 2.0
# The server replies with one byte before it asks for a password (documentation of PostgreSQL, "Message Formats").
SSL_REQUEST = struct.pack("!ii", 8, 80877103)


class DatabaseHangs(psycopg.OperationalError):
    """PostgreSQL did not answer, or did so a moment ago and only one thread at a time may try again."""


class Breaker:
    """Is closed while the server answers. While it is open, it lets one try through every RETRY_INTERVAL."""

    def __init__(self) -> None:
        self.lock = Lock()
        # None while it is closed.
        self.next_try: float | None = None

    def open(self, now: float) -> None:
        with self.lock:
            self.next_try = now + RETRY_INTERVAL

    def close(self) -> None:
        self.next_try = None

    def require_try(self, now: float) -> None:
        """Raises DatabaseHangs, unless it is time for the next try."""
        with self.lock:
            if self.next_try is not None and now < self.next_try:
                raise DatabaseHangs("PostgreSQL did not answer a moment ago.")
            if self.next_try is not None:
                self.next_try = now + RETRY_INTERVAL


class ServerState:
    """The state of PostgreSQL, shared by the threads of this process."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.statement_breaker, self.connection_breaker = Breaker(), Breaker()
        # The last times of a probe, of a failed probe, and of a statement that ended with a good connection.
        self.probed_at = self.hung_at = self.answered_at = float("-inf")
        self.paused_until = float("-inf")

    def guard(self, gen: PQGen[Result], libpq: PGconn, limit: float) -> Generator[Any, Any, Result]:
        """Wraps psycopg's generator of a statement. Checks the server whenever nothing has arrived for a while.

        Raises DatabaseHangs. If this happens after the statement has begun, its connection is closed.
        """
        began_at = time.monotonic()
        self.require_no_pause(began_at)
        if self.statement_breaker.next_try is not None:
            self.statement_breaker.require_try(began_at)
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready == Ready.NONE:
                    self.check_response(libpq, began_at, limit)
                state = gen.send(ready)
        except StopIteration as end:
            result: Result = end.value
            return result
        except DatabaseHangs:
            libpq.finish()
            raise
        finally:
            if libpq.status == psycopg.pq.ConnStatus.OK:
                self.record_response()

    def check_response(self, libpq: PGconn, began_at: float, limit: float) -> None:
        """Raises DatabaseHangs."""
        age = time.monotonic() - began_at
        if age > limit + GRACE:
            self.paused_until = time.monotonic() + PAUSE
            log.error("PostgreSQL kept no limit: a statement is given up.")
            raise DatabaseHangs("PostgreSQL did not keep a limit.")
        if age > SUSPECT_AGE:
            self.probe(libpq)
        # A statement that began shortly before the hang ends too.
        if self.hung_at > began_at:
            raise DatabaseHangs("PostgreSQL hangs.")

    def probe(self, libpq: PGconn) -> None:
        """Probes the server, unless another thread has just done so. Threads wait for a probe that is in progress."""
        with self.lock:
            if time.monotonic() - self.probed_at < PROBE_INTERVAL:
                return
            # The folder of its socket, or its IP address: a DNS query for its name can hang, too.
            if not is_answering((libpq.hostaddr or libpq.host).decode(), int(libpq.port)):
                self.record_hang(time.monotonic())
            self.probed_at = time.monotonic()

    def record_hang(self, now: float) -> None:
        # The breakers open first: so each statement began before `hung_at`, or finds an open breaker.
        for breaker in (self.statement_breaker, self.connection_breaker):
            breaker.open(now)
        self.hung_at = now
        log.error("PostgreSQL hangs: its statements are given up.")

    def record_response(self) -> None:
        self.answered_at = time.monotonic()
        if self.statement_breaker.next_try is not None:
            self.statement_breaker.close()

    def require_no_pause(self, now: float) -> None:
        """Raises DatabaseHangs."""
        if now < self.paused_until:
            raise DatabaseHangs("PostgreSQL did not keep a limit a moment ago.")

    def require_connection_try(self) -> None:
        """Raises DatabaseHangs."""
        now = time.monotonic()
        self.require_no_pause(now)
        self.connection_breaker.require_try(now)

    def record_connection(self) -> None:
        self.connection_breaker.close()
        self.statement_breaker.close()


def is_answering(host: str, port: int) -> bool:
    """Tells whether a server answers in PROBE_TIMEOUT. A server that has ended does not hang: it closes connections."""
    deadline = time.monotonic() + PROBE_TIMEOUT
    is_local = host.startswith("/")
    family = socket.AF_UNIX if is_local else socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.settimeout(PROBE_TIMEOUT)
        try:
            server.connect(f"{host}/.s.PGSQL.{port}" if is_local else (host, port))
            server.sendall(SSL_REQUEST)
            server.settimeout(max(0.001, deadline - time.monotonic()))
            server.recv(1)
        except (TimeoutError, BlockingIOError):
            # BlockingIOError: a local server accepts no connections, and its queue of them is full.
            return False
        except OSError:
            return True
        return True


server_state = ServerState()
