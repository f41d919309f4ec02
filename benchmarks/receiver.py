"""A receiver of deliveries, fast enough not to affect the measurements: `python -m benchmarks.receiver LOG`.

It prints its port, then answers until it is killed. LOG gets a line for each delivery: the time, the path and the id.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import uvloop

OK_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
REDIRECT_ANSWER = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/\r\nContent-Length: 0\r\n\r\n"
ENDLESS_ANSWER_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n"
SLOW_ANSWER_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"


class Receiver(asyncio.Protocol):
    """The first segment of the path decides whether it answers correctly, or with one of the faults below."""

    def __init__(self, log: TextIO) -> None:
        self.log, self.buffer = log, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while request := self.parse_request():
            path, body = request
            # Every body begins with its id; a JSON parser would cost time that is measured too.
            self.log.write(f"{time.time()} {path} {body[7:43].decode()}\n")
            self.send_answer(path.split("/")[1])

    def parse_request(self) -> tuple[str, bytes] | None:
        """The path and the body of the next request, or None if it is incomplete."""
        head, separator, rest = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return None
        lines = head.lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        if len(rest) < length:
            return None
        self.buffer = rest[length:]
        return lines[0].split()[1].decode(), rest[:length]

    def send_answer(self, behaviour: str) -> None:
        match behaviour:
            case "hang":
                pass
            case "slow":
                self.answer_after(0.1)
            case "late":
                self.answer_after(3)
            case "drip":
                self.transport.write(SLOW_ANSWER_HEAD)
                self.send_byte()
            case "flood":
                self.transport.write(ENDLESS_ANSWER_HEAD + b"x" * 20_000_000)
            case "away":
                self.transport.write(REDIRECT_ANSWER)
            case _:
                self.transport.write(OK_ANSWER)

    def answer_after(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self.write, OK_ANSWER)

    def write(self, answer: bytes) -> None:
        """Does nothing if the sender was killed meanwhile."""
        if not self.transport.is_closing():
            self.transport.write(answer)

    def send_byte(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(b".")
            asyncio.get_running_loop().call_later(0.5, self.send_byte)


async def serve(log: TextIO) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Receiver(log), "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w", buffering=1) as log:
        uvloop.run(serve(log))
