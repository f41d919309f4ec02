"""The messages between a reader and its client: a kind, a length, and the content."""

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from socket import socket

from books.files.formats.records import NumberText, Record

HEADER = struct.Struct(">cI")
# The size of a batch of records with a record of maximum size, with twelve bytes of JSON for each character.
MAX_MESSAGE_BYTES = 32 * 2**20
# To the reader: its job, a part of the file, and the next rejected records.
JOB, CHUNK, REASONS = b"j", b"c", b"r"
# From the reader: it has started, and has not read any byte of the file.
READY = b"+"
# From the reader: a request for a part of the file or for rejected records.
NEED_CHUNK, NEED_REASONS = b"C", b"R"
# From the reader: results, in parts; why it cannot read the file; a bug; the end.
RESULT, REFUSED, FAILED, END = b"=", b"!", b"?", b"."


class BadMessage(Exception):
    """The other process sent an invalid message."""


def send(connection: socket, kind: bytes, content: bytes = b"") -> None:
    connection.sendall(HEADER.pack(kind, len(content)) + content)


def receive(connection: socket, wait: Callable[[], None] = lambda: None) -> tuple[bytes, bytes]:
    """Returns the next message. Calls `wait` whenever the connection's time-out has passed without a byte.

    Raises EOFError, BadMessage.
    """
    kind, length = HEADER.unpack(read_exactly(connection, HEADER.size, wait))
    if length > MAX_MESSAGE_BYTES:
        raise BadMessage
    return kind, read_exactly(connection, length, wait)


def read_exactly(connection: socket, size: int, wait: Callable[[], None]) -> bytes:
    content = bytearray()
    while len(content) < size:
        try:
            piece = connection.recv(min(size - len(content), 2**18))
        except TimeoutError:
            wait()
            continue
        if not piece:
            raise EOFError
        content += piece
    return bytes(content)


def encode_records(records: Iterable[Record]) -> bytes:
    """Python's own JSON module keeps lone surrogates and long integers. The raw records stay in the reader."""
    rows = []
    for record in records:
        numbers = [name for name, value in record.values.items() if type(value) is NumberText]
        rows.append((record.line, record.values, numbers, record.problem, record.warnings, record.number))
    return json.dumps(rows).encode()


def decode_records(content: bytes) -> Iterator[Record]:
    for line, values, numbers, problem, warnings, number in json.loads(content):
        marked = {name: NumberText(values[name]) for name in numbers}
        yield Record(line, {**values, **marked}, None, problem, tuple(warnings), number)
