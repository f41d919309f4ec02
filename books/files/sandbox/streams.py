"""A stream of a file that is stored in parts."""

from collections.abc import Callable
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO, cast

# Returns the part with this number; empty after the end of the file.
ReadChunk = Callable[[int], bytes]


class ChunkStream(RawIOBase):
    """The bytes of a file. One part at a time is in memory. All parts but the last have `chunk_bytes`."""

    def __init__(self, size: int, chunk_bytes: int, read_chunk: ReadChunk) -> None:
        self.size, self.chunk_bytes, self.read_chunk = size, chunk_bytes, read_chunk
        self.position = 0
        self.number = -1
        self.chunk = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = 0) -> int:
        self.position = offset + (0, self.position, self.size)[whence]
        return self.position

    def readinto(self, buffer: Any) -> int:
        number, start = divmod(self.position, self.chunk_bytes)
        if number != self.number:
            self.number, self.chunk = number, self.read_chunk(number)
        piece = self.chunk[start : start + len(buffer)]
        buffer[: len(piece)] = piece
        self.position += len(piece)
        return len(piece)


def open_chunks(size: int, chunk_bytes: int, read_chunk: ReadChunk) -> BinaryIO:
    return cast("BinaryIO", BufferedReader(ChunkStream(size, chunk_bytes, read_chunk)))
