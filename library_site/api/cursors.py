"""Encodes and decodes the cursors of pages: values as a JSON array, in base64url without padding."""

import base64
from collections.abc import Sequence
from datetime import datetime
from types import GenericAlias
from typing import Annotated, Any

import msgspec

from library_site.db.integers import BIGINT_MAX
from library_site.db.keyset import Start

# One less than the largest bigint: the page next to an empty page begins with this number plus one.
MAX_CURSOR_INTEGER = BIGINT_MAX - 1
CursorInteger = Annotated[int, msgspec.Meta(ge=-MAX_CURSOR_INTEGER, le=MAX_CURSOR_INTEGER)]
# In UTC, without a time zone.
CursorTime = Annotated[datetime, msgspec.Meta(tz=False)]


class InvalidCursor(ValueError):
    """The string is not a cursor of this list."""


class Cursor:
    """Encodes values of these types."""

    def __init__(self, *types: Any, max_length: int = 200) -> None:
        # `msgspec.json.decode` would take the types apart at each call.
        self.decoder, self.max_length = msgspec.json.Decoder[Any](GenericAlias(tuple, types)), max_length

    def decode(self, text: str) -> list[Any]:
        """Raises ValueError."""
        if len(text) > self.max_length:
            raise InvalidCursor
        return [*self.decoder.decode(base64.urlsafe_b64decode(f"{text}=="))]

    def encode(self, values: Sequence[Any]) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(values)).decode().rstrip("=")

    def decode_start(self, text: str) -> Start:
        """Decodes the direction of a page, and its key. Raises ValueError."""
        backward, *key = self.decode(text)
        return Start(tuple(key), backward)


ID_CURSOR = Cursor(bool, CursorInteger)
