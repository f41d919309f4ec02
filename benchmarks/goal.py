"""The goals: requests/s of our service with all its features, as multiples of peers that lack them, and limits of what
some of its requests cost.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Goal(NamedTuple):
    """Factors by column, relative to the best of these peers."""

    title: str
    peers: frozenset[str]
    factors: Mapping[str, float]


COLUMNS = ("get", "list100", "list10", "put", "put-as-read", "post", "rare", "common")
GOALS = (
    Goal(
        "the better FastAPI",
        frozenset({"fastapi-sync", "fastapi-async"}),
        dict(zip(COLUMNS, (5.0, 5.0, 5.0, 3.0, 3.0, 2.5, 6.0, 4.0), strict=True)),
    ),
    Goal(
        "Litestar",
        frozenset({"litestar"}),
        dict(zip(COLUMNS, (1.5, 1.4, 1.5, 1.0, 1.0, 1.0, 2.0, 1.5), strict=True)),
    ),
    Goal(
        "Fastify",
        frozenset({"fastify"}),
        dict(zip(COLUMNS, (1.0, 1.5, 1.1, 0.5, 0.5, 0.5, 1.5, 1.2), strict=True)),
    ),
)
# µs CPU of a request with a credential beyond those of a request without.
MAX_CREDENTIAL_CPU_US = 80
# The CPU time of a filter right after writes, as a multiple of that before: the same, but for the measurement's noise.
MAX_GROWTH_AFTER_WRITES = 1.1
