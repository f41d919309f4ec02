"""Gives up the statements of a PostgreSQL that hangs, so that their threads go on.

All of PostgreSQL's time-outs are its own: a server that is stopped or out of reach keeps none of them.
"""

import logging
import os
import socket
import struct
import time
from collections.abc import Iterable
from contextlib import suppress
from threading import Event, Lock, Thread

import psycopg
from psycopg.pq.abc import PGconn

log = logging.getLogger(__name__)

# Seconds that a statement gets beyond its limit: the server ends it first, unless its session hangs.
GRACE = 2.0
# Seconds after which a statement is a reason to ask the server, in which the server must answer, and between two looks
# and two questions. A hang is noticed after less than two seconds, in which no thread may answer even `/livez`.
SUSPECT_AGE, PROBE_TIMEOUT, LOOK_INTERVAL, PROBE_INTERVAL = 0.5, 1.0, 0.25, 0.5
# Seconds without statements after one was given up by its limit. Requests that waited for a thread meanwhile have
# waited long enough: sessions that hang can hold locks, for which these requests would wait as long again.
PAUSE = 1.0
# Seconds between two tries while the server does not answer.
RETRY_INTERVAL = 2.0
# The server answers with one byte, before it reads a password (documentation of PostgreSQL, "Message Formats").
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


class Watchdog:
    """Knows the statements of this process that PostgreSQL is to answer, and shuts down the sockets of those that it
    will not answer.
    """

    def __init__(self) -> None:
        # When each began, and after how many seconds the server gives it up. `dict` needs no lock for one step.
        self.statements: dict[PGconn, tuple[float, float]] = {}
        self.lock = Lock()
        self.statement_breaker, self.connection_breaker = Breaker(), Breaker()
        self.thread: Thread | None = None
        self.is_stopping = Event()
        self.probed_at = self.paused_until = float("-inf")
        # When a statement last ended on a connection that is good.
        self.answered_at = float("-inf")

    def begin(self, libpq: PGconn, limit: float) -> None:
        """Raises DatabaseHangs. `end` must be called when the statement has ended."""
        now = time.monotonic()
        self.require_no_pause(now)
        # It comes first: a hang that is recorded meanwhile finds either the statement here, or an open breaker there.
        self.statements[libpq] = now, limit
        if self.statement_breaker.next_try is not None:
            self.require_try(libpq, now)

    def require_no_pause(self, now: float) -> None:
        """Raises DatabaseHangs."""
        if now < self.paused_until:
            raise DatabaseHangs("PostgreSQL did not keep a limit a moment ago.")

    def require_try(self, libpq: PGconn, now: float) -> None:
        try:
            self.statement_breaker.require_try(now)
        except DatabaseHangs:
            self.remove(libpq)
            raise

    def end(self, libpq: PGconn) -> None:
        self.remove(libpq)
        if libpq.status == psycopg.pq.ConnStatus.OK:
            self.answered_at = time.monotonic()
            if self.statement_breaker.next_try is not None:
                self.statement_breaker.close()

    def remove(self, libpq: PGconn) -> None:
        if self.statements.pop(libpq, None) is None:
            # The watchdog has taken it, and is at its socket: nobody may close that meanwhile.
            with self.lock:
                return

    def record_connection(self) -> None:
        self.connection_breaker.close()
        self.statement_breaker.close()

    def start(self) -> None:
        """Starts the thread of this process, unless it runs. A child process has none of its parent's."""
        with self.lock:
            if self.thread is None or not self.thread.is_alive():
                self.thread = Thread(target=self.look_regularly, name="watchdog", daemon=True)
                self.thread.start()

    def stop(self) -> None:
        """Ends the thread, before a fork. The next connection starts it again."""
        if self.thread is not None:
            self.is_stopping.set()
            self.thread.join()
            self.is_stopping.clear()

    def look_regularly(self) -> None:
        while not self.is_stopping.wait(LOOK_INTERVAL):
            try:
                self.look(time.monotonic())
            except Exception:
                # Without this thread, a hang would have no end.
                log.exception("The watchdog of the database failed.")

    def look(self, now: float) -> None:
        statements = self.statements.copy()
        if late := [libpq for libpq, (began_at, limit) in statements.items() if now - began_at > limit + GRACE]:
            # It comes first: a request that waits for a thread gets one at once.
            self.paused_until = time.monotonic() + PAUSE
            log.error("PostgreSQL kept no limit: %d statements are given up.", len(late))
            self.give_up(late)
        suspect = next((libpq for libpq, (began_at, _) in statements.items() if now - began_at > SUSPECT_AGE), None)
        if suspect is None or now - self.probed_at < PROBE_INTERVAL:
            return
        if not is_answering(*find_address(suspect)):
            self.record_hang(time.monotonic())
        self.probed_at = time.monotonic()

    def record_hang(self, now: float) -> None:
        """Gives up all statements, also young ones: what has begun meanwhile waits for the same server."""
        for breaker in (self.statement_breaker, self.connection_breaker):
            breaker.open(now)
        log.error("PostgreSQL hangs: %d statements are given up.", len(self.statements))
        self.give_up(self.statements.copy())

    def give_up(self, connections: Iterable[PGconn]) -> None:
        """Makes the threads that wait go on: libpq takes a socket that is shut down for a lost connection."""
        for libpq in connections:
            with self.lock:
                if self.statements.pop(libpq, None):
                    shut_down(libpq)


def find_address(libpq: PGconn) -> tuple[str, int]:
    """Returns the folder of the server's socket, or its address and not its name: to look that up can hang, too."""
    return (libpq.hostaddr or libpq.host).decode(), int(libpq.port)


def is_answering(host: str, port: int) -> bool:
    """Whether a server answers in PROBE_TIMEOUT. One that is gone needs no watchdog: its connections have ended."""
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


def shut_down(libpq: PGconn) -> None:
    """libpq itself closes the socket, so that its number belongs to nobody else until then."""
    number = libpq.socket
    with suppress(OSError), socket.socket(fileno=os.dup(number)) as copy:
        # libpq closes a socket when the connection is lost; then the number can be another one's already.
        if libpq.socket == number:
            copy.shutdown(socket.SHUT_RDWR)


watchdog = Watchdog()
