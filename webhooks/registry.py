"""The kinds of events (specification, Section 6). Each app registers the kinds that it publishes."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class EventKind(NamedTuple):
    """A kind of event. `sentence` describes it; `payload` is the JSON schema of its `data`, and `example` such data."""

    name: str
    sentence: str
    payload: Mapping[str, Any]
    example: Mapping[str, Any]


# The kinds of the stream by name, in the order of their registration.
EVENT_KINDS: dict[str, EventKind] = {}
# A user sends it; it is not in the stream.
PING_KIND = "test.ping"
# An endpoint with it receives all kinds of the stream.
ALL_KINDS = "*"
ANY_OBJECT = {"type": "object"}


def register_kind(
    name: str, sentence: str, payload: Mapping[str, Any] = ANY_OBJECT, example: Mapping[str, Any] = {}
) -> str:
    """Adds a kind to the stream, and returns its name. Called while the app's modules are imported."""
    EVENT_KINDS[name] = EventKind(name, sentence, payload, example)
    return name
