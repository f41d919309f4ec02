"""What deliveries are sent to, fast enough to be no part of what is measured: `python -m benchmarks.receiver LOG`.

Writes its port, then answers until it is killed. LOG gets a line for each delivery: the time, the path and the id.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import uvloop

WELL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
AWAY = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/\r\nContent-Length: 0\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n"
DRIPPING = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"


class Receiver(asyncio.Protocol):
    """By the first word of the path it answers well, or in one of the ways that ought to harm nobody."""

    def __init__(self, log: TextIO) -> None:
        self.log, self.read = log, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.read += data
        while request := self.request():
            path, body = request
            # Every body begins with its id: parsing would be measured too.
            self.log.write(f"{time.time()} {path} {body[7:43].decode()}\n")
            self.answer(path.split("/")[1])

    def request(self) -> tuple[str, bytes] | None:
        """The path and the body of the next one, once it is here."""
        head, end, rest = self.read.partition(b"\r\n\r\n")
        if not end:
            return None
        lines = head.lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        if len(rest) < length:
            return None
        self.read = rest[length:]
        return lines[0].split()[1].decode(), rest[:length]

    def answer(self, manner: str) -> None:
        match manner:
            case "hang":
                pass
            case "slow":
                self.later(0.1)
            case "late":
                self.later(3)
            case "drip":
                self.transport.write(DRIPPING)
                self.drip()
            case "flood":
                self.transport.write(ENDLESS + b"x" * 20_000_000)
            case "away":
                self.transport.write(AWAY)
            case _:
                self.transport.write(WELL)

    def later(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self.write, WELL)

    def write(self, answer: bytes) -> None:
        """Unless the sender was killed meanwhile."""
        if not self.transport.is_closing():
            self.transport.write(answer)

    def drip(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(b".")
            asyncio.get_running_loop().call_later(0.5, self.drip)


async def receive(log: TextIO) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Receiver(log), "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w", buffering=1) as log:
        uvloop.run(receive(log))
