"""The messages between a reader and who started it: a kind, a length, and so many bytes."""

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from socket import socket
from typing import Any

from books.files.formats.records import NumberText, Record

HEADER = struct.Struct(">cI")
# A batch of records with one of the longest, each of whose characters takes twelve bytes in JSON.
MAX_MESSAGE_BYTES = 32 * 2**20
# To the reader: what it is to do, a part of the file, and the next records that come back.
JOB, CHUNK, REASONS = b"j", b"c", b"r"
# From the reader: that it has started, before it sees a byte of the file.
READY = b"+"
# From the reader: which part of the file and which records that come back it needs.
NEED_CHUNK, NEED_REASONS = b"C", b"R"
# From the reader: what it found, in parts; why it cannot read the file; what failed; the end.
RESULT, REFUSED, FAILED, END = b"=", b"!", b"?", b"."


class BadMessage(Exception):
    """The other process sent nothing that can be a message."""


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
    """JSON of Python's own module keeps lone surrogates and long integers. The raw records stay with the reader."""
    rows = [
        (record.line, record.values, list_numbers(record.values), record.problem, record.doubts) for record in records
    ]
    return json.dumps(rows).encode()


def list_numbers(values: Mapping[str, Any]) -> list[str]:
    """Returns the columns whose texts were numbers of a spreadsheet."""
    return [name for name, value in values.items() if type(value) is NumberText]


def decode_records(content: bytes) -> Iterator[Record]:
    for line, values, numbers, problem, doubts in json.loads(content):
        marked = {name: NumberText(values[name]) for name in numbers}
        yield Record(line, {**values, **marked}, None, problem, tuple(doubts))
