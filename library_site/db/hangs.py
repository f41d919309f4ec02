"""Lets the threads of requests go on when PostgreSQL hangs.

All of PostgreSQL's time-outs are its own: a server that is stopped or out of reach keeps none of them. So each thread
that waits for a statement asks the server now and then whether it still answers.
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

# Seconds that a statement gets beyond its limit: the server ends it first, unless its session hangs.
GRACE = 2.0
# Seconds after which a statement is a reason to ask the server, in which the server must answer, and between two
# questions. A hang is noticed after less than two seconds, in which no thread may answer even `/livez`.
SUSPECT_AGE, PROBE_TIMEOUT, PROBE_INTERVAL = 0.5, 1.0, 0.5
# Seconds without statements after one was given up by its limit. Requests that waited for a thread meanwhile have
# waited long enough: sessions that hang can hold locks, for which these requests would wait as long again.
PAUSE = 1.0
# Seconds between two tries while the server does not answer.
RETRY_INTERVAL = 2.0
# The server responses with one byte, before it reads a password (documentation of PostgreSQL, "Message Formats").
SSL_REQUEST = struct.pack("!ii", 8, 80877103)


class DatabaseHangs(psycopg.OperationalError):
    """PostgreSQL did not answer a moment ago, and only one thread at a time asks again."""


class Breaker:
    """Is closed while the server answers. While it is open, one try passes in RETRY_INTERVAL."""

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
        """Raises DatabaseHangs: nobody waits for what others wait for already."""
        with self.lock:
            if self.next_try is not None and now < self.next_try:
                raise DatabaseHangs("PostgreSQL did not answer a moment ago.")
            if self.next_try is not None:
                self.next_try = now + RETRY_INTERVAL


class ServerState:
    """What the threads of this process know together about their PostgreSQL."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.statement_breaker, self.connection_breaker = Breaker(), Breaker()
        # When the server was asked last, did not answer last, and last ended a statement on a connection that is good.
        self.probed_at = self.hung_at = self.answered_at = float("-inf")
        self.paused_until = float("-inf")

    def guard(self, gen: PQGen[Result], libpq: PGconn, limit: float) -> Generator[Any, Any, Result]:
        """Returns psycopg's generator, with a look at the server whenever nothing has arrived for a while.

        Raises DatabaseHangs. If the statement was sent by then, its connection is closed.
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
        # A young statement, too, waits for a server that hangs.
        if self.hung_at > began_at:
            raise DatabaseHangs("PostgreSQL hangs.")

    def probe(self, libpq: PGconn) -> None:
        """Asks the server, unless another thread has just done so. The others wait for its response."""
        with self.lock:
            if time.monotonic() - self.probed_at < PROBE_INTERVAL:
                return
            if not is_answering(*find_address(libpq)):
                self.record_hang(time.monotonic())
            self.probed_at = time.monotonic()

    def record_hang(self, now: float) -> None:
        # The breakers come first: a statement begins before `hung_at`, or finds them open.
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


def find_address(libpq: PGconn) -> tuple[str, int]:
    """Returns the folder of the server's socket, or its address and not its name: to look that up can hang, too."""
    return (libpq.hostaddr or libpq.host).decode(), int(libpq.port)


def is_answering(host: str, port: int) -> bool:
    """Whether a server answers in PROBE_TIMEOUT. One that is gone does not hang: its connections have ended."""
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
            # A local server that accepts no connections has a queue, which can be full.
            return False
        except OSError:
            return True
        return True


server_state = ServerState()
