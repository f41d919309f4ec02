"""A proxy between the library and PostgreSQL that ends a connection at an exact point of a request, or falls silent."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum, auto
from pathlib import Path
from select import select
from socket import AF_UNIX, SHUT_RDWR, create_connection, socket
from socketserver import BaseRequestHandler, ThreadingUnixStreamServer
from struct import unpack
from threading import Event, Thread
from typing import Any, TypeVar

import psycopg
from django.db import connection

from tests.support.waiting import wait_until

# Where libpq looks for the socket of a server, in the folder that is its host.
SOCKET_NAME, PORT = ".s.PGSQL.{}", 5432
CHUNK = 64 * 1024
# Types of messages (documentation of PostgreSQL, "Message Formats").
BACKEND_KEY_DATA, READY_FOR_QUERY, TERMINATE = b"K", b"Z", b"X"


class Fault(Enum):
    """How a connection ends: before a statement is sent, or after it was executed."""

    UNSENT = auto()
    # PostgreSQL says that it ends the session, and does not read the statement.
    TERMINATED = auto()
    UNANSWERED = auto()


class DatabaseProxy(ThreadingUnixStreamServer):
    """Relays statements and answers, until a statement has the fault that was chosen for it."""

    def __init__(self, folder: Path, parameters: dict[str, Any]) -> None:
        """`parameters` are psycopg's for the database."""
        super().__init__(str(folder / SOCKET_NAME.format(PORT)), Relay)
        # What a client has for its host.
        self.folder = folder
        self.parameters = parameters
        # A connection without the proxy.
        self.control = psycopg.connect(**parameters, autocommit=True)
        self.clients: set[socket] = set()
        self.faults: dict[int, Fault] = {}
        self.calls: dict[bytes, Callable[[], object]] = {}
        self.statement_count = 0
        self.is_passing = Event()
        self.is_passing.set()

    def prepare(self, faults: Mapping[int, Fault]) -> None:
        """Chooses the faults of statements by their number; the next one has the number 1."""
        self.faults, self.statement_count = {**faults}, 0

    def call_before(self, sql: bytes, function: Callable[[], object]) -> None:
        """Calls the function before the next message with this SQL."""
        self.calls[sql] = function

    def begin_statement(self, message: bytes) -> Fault | None:
        """Returns the fault of the next statement."""
        for sql in [sql for sql in self.calls if sql in message]:
            self.calls.pop(sql)()
        self.statement_count += 1
        return self.faults.pop(self.statement_count, None)

    def server_close(self) -> None:
        super().server_close()
        self.control.close()

    @contextmanager
    def fall_silent(self) -> Iterator[None]:
        """Passes on nothing during the block, in either direction, as a network does that drops all packets."""
        self.is_passing.clear()
        try:
            yield
        finally:
            self.is_passing.set()

    def disconnect(self) -> None:
        """Ends the connections of all clients. PostgreSQL notices it when it answers."""
        for client in [*self.clients]:
            client.shutdown(SHUT_RDWR)

    def terminate(self, pid: int) -> None:
        """Makes PostgreSQL end a session, and waits until it has ended."""
        end_session(self.control, pid)


def end_session(control: psycopg.Connection, pid: int) -> None:
    """Makes PostgreSQL end a session, and waits until it has ended: its own time-out only looks each 100 ms."""
    control.execute("SELECT pg_terminate_backend(%s)", [pid])
    wait_until(lambda: not has_session(control, pid))


def has_session(control: psycopg.Connection, pid: int) -> bool:
    return bool(control.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid]).rowcount)


Proxy = TypeVar("Proxy", bound=DatabaseProxy)


class Relay(BaseRequestHandler):
    """The connection of one client."""

    server: DatabaseProxy

    def setup(self) -> None:
        self.database = connect_to_server(self.server.control.info)
        self.buffer = bytearray()
        self.pid = 0
        # Whether PostgreSQL has answered all statements.
        self.is_idle = False
        self.fault: Fault | None = None
        self.server.clients.add(self.request)

    def handle(self) -> None:
        relays = {self.request: self.relay_statement, self.database: self.relay_answer}
        # The client may have closed its connection.
        with suppress(OSError):
            while all(relays[source]() for source in select([*relays], [], [])[0]):
                pass

    def finish(self) -> None:
        self.server.clients.discard(self.request)
        self.database.close()

    def relay_statement(self) -> bool:
        """Returns whether the connection goes on."""
        data = self.request.recv(CHUNK)
        self.server.is_passing.wait()
        if self.is_idle and data[:1] not in (b"", TERMINATE):
            self.is_idle, self.fault = False, self.server.begin_statement(data)
        if self.fault is Fault.TERMINATED:
            self.server.terminate(self.pid)
            return True
        if not data or self.fault is Fault.UNSENT:
            return False
        self.database.sendall(data)
        return True

    def relay_answer(self) -> bool:
        """Returns whether the connection goes on."""
        data = self.database.recv(CHUNK)
        self.server.is_passing.wait()
        self.read_messages(data)
        if self.fault is Fault.UNANSWERED:
            return bool(data) and not self.is_idle
        self.request.sendall(data)
        return bool(data)

    def read_messages(self, data: bytes) -> None:
        self.buffer += data
        while len(self.buffer) > 4 and len(self.buffer) > (length := unpack("!i", self.buffer[1:5])[0]):
            kind, content = bytes(self.buffer[:1]), bytes(self.buffer[5 : length + 1])
            del self.buffer[: length + 1]
            if kind == BACKEND_KEY_DATA:
                self.pid = unpack("!i", content[:4])[0]
            elif kind == READY_FOR_QUERY:
                self.is_idle = True


def connect_to_server(info: psycopg.ConnectionInfo) -> socket:
    """Connects to the server of another connection."""
    if not info.host.startswith("/"):
        return create_connection((info.host, info.port))
    server = socket(AF_UNIX)
    server.connect(f"{info.host}/{SOCKET_NAME.format(info.port)}")
    return server


@contextmanager
def serve_proxy(proxy_class: type[Proxy], parameters: dict[str, Any]) -> Iterator[Proxy]:
    """Serves a proxy to the database of these parameters of psycopg."""
    with tempfile.TemporaryDirectory() as folder, proxy_class(Path(folder), parameters) as proxy:
        thread = Thread(target=proxy.serve_forever, args=[0.01])
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()


@contextmanager
def connect_through_proxy() -> Iterator[DatabaseProxy]:
    """Connects Django to its database through a proxy."""
    own_address = {name: connection.settings_dict[name] for name in ("HOST", "PORT")}
    with serve_proxy(DatabaseProxy, connection.get_connection_params()) as proxy:
        connection.close()
        connection.settings_dict.update(HOST=str(proxy.folder), PORT=str(PORT))
        try:
            yield proxy
        finally:
            connection.close()
            connection.settings_dict.update(own_address)
