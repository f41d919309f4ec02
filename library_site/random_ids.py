"""Random ids that are made without the operating system.

`os.urandom` releases the interpreter lock (GIL), and the thread then waits to get it back.
"""

import os
from hashlib import blake2b
from itertools import count
from random import Random
from uuid import UUID


class KeyedCounter:
    """Numbers nobody can guess: digests of a counter with a secret key (RFC 7693, 3.3)."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.key, self.counter = os.urandom(32), count()

    def draw(self) -> bytes:
        """Returns 16 bytes."""
        return blake2b(next(self.counter).to_bytes(8), digest_size=16, key=self.key).digest()


keyed_counter = KeyedCounter()
# Who has seen many of its numbers can guess the next; it is four times as fast.
generator = Random()  # noqa: S311


def restart_generators() -> None:
    keyed_counter.restart()
    generator.seed()


# Otherwise all workers of the server would draw the same numbers.
os.register_at_fork(after_in_child=restart_generators)


def make_hex_id() -> str:
    """Returns 32 hexadecimal digits, which are no secret."""
    return f"{generator.getrandbits(128):032x}"


def make_uuid() -> UUID:
    """Returns a random UUID (RFC 9562, 5.4) that nobody can guess."""
    return UUID(bytes=keyed_counter.draw(), version=4)
