"""Random ids that are no secrets. `os.urandom` lets another thread have the interpreter, for which one then waits."""

import os
from random import Random
from uuid import UUID

generator = Random()  # noqa: S311
# Otherwise all workers of the server would draw the same numbers.
os.register_at_fork(after_in_child=generator.seed)


def make_hex_id() -> str:
    """Returns 32 hexadecimal digits."""
    return f"{generator.getrandbits(128):032x}"


def make_uuid() -> UUID:
    """Returns a UUID of version 4 (RFC 9562, 5.4)."""
    return UUID(int=generator.getrandbits(128), version=4)
