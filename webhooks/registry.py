"""The kinds of events (specification, Section 6). Each app registers the kinds that it publishes."""

from typing import Any, NamedTuple


class EventDocument(NamedTuple):
    """The JSON schema of an event's `data`, and an example of it."""

    payload: dict[str, Any]
    example: dict[str, Any]


class EventKind(NamedTuple):
    """A kind of event. `sentence` describes it; EVENT_DOCUMENTS has its EventDocument."""

    name: str
    sentence: str


# The kinds of the stream by name, in the order of their registration.
EVENT_KINDS: dict[str, EventKind] = {}
# A user sends it; it is not in the stream.
PING_KIND = "test.ping"
# An endpoint with it receives all kinds of the stream.
ALL_KINDS = "*"


def register_kind(name: str, sentence: str) -> str:
    """Adds a kind to the stream, and returns its name. Called while the app's modules are imported."""
    EVENT_KINDS[name] = EventKind(name, sentence)
    return name
