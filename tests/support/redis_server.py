"""A throw-away Redis on a Unix socket, from the system's own server; it keeps nothing on disk."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redis import Redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry


class RedisServer:
    """Starts and stops; what it counted is gone when it starts again."""

    def __init__(self, folder: Path) -> None:
        self.url = f"unix://{folder / 'redis.sock'}"
        self.command = ["redis-server", "--port", "0", "--unixsocket", str(folder / "redis.sock"), "--save", ""]
        # Tries for ten seconds: the server needs a moment to listen.
        self.client: Redis = Redis.from_url(self.url, retry=Retry(ConstantBackoff(0.05), 200))

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        self.client.ping()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def keys(self) -> list[str]:
        return [key.decode() for key in self.client.scan_iter()]


@contextmanager
def running_redis(folder: Path) -> Iterator[RedisServer]:
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        server.client.close()
