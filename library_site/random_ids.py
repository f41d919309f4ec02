"""Random ids that are no secrets: who has seen many can guess the next.

`os.urandom` lets another thread have the interpreter, for which one then waits.
"""

import os
from random import Random

generator = Random()  # noqa: S311
# Otherwise all workers of the server would draw the same numbers.
os.register_at_fork(after_in_child=generator.seed)


def make_hex_id() -> str:
    """Returns 32 hexadecimal digits."""
    return f"{generator.getrandbits(128):032x}"
