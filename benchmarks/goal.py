"""The goals: requests/s of our service with all its features, as multiples of peers that lack them."""

from collections.abc import Mapping
from typing import NamedTuple


class Goal(NamedTuple):
    """Factors by column, relative to the best of these peers."""

    title: str
    peers: frozenset[str]
    factors: Mapping[str, float]


GOALS = (
    Goal(
        "the better FastAPI",
        frozenset({"fastapi-sync", "fastapi-async"}),
        {"get": 5.0, "list100": 5.0, "list10": 5.0, "put": 4.0, "post": 3.0, "rare": 6.0, "common": 4.0},
    ),
    Goal(
        "Litestar",
        frozenset({"litestar"}),
        {"get": 1.5, "list100": 1.4, "list10": 1.5, "put": 1.2, "post": 1.0, "rare": 2.0, "common": 1.5},
    ),
)
