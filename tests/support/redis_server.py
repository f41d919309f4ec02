"""Starts a temporary Redis server from the binary of the system, on a Unix socket. It stores nothing on disk."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redis import Redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry


class RedisServer:
    """A server that can be stopped and started again; it loses its data when it stops."""

    def __init__(self, folder: Path) -> None:
        self.url = f"unix://{folder / 'redis.sock'}"
        self.command = ["redis-server", "--port", "0", "--unixsocket", str(folder / "redis.sock"), "--save", ""]
        # Tries for ten seconds, because the server needs a moment until it listens.
        self.client: Redis = Redis.from_url(self.url, retry=Retry(ConstantBackoff(0.05), 200))

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        self.client.ping()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def list_keys(self) -> list[str]:
        return [key.decode() for key in self.client.scan_iter()]


@contextmanager
def start_redis(folder: Path) -> Iterator[RedisServer]:
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        server.client.close()
