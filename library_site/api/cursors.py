"""Encodes and decodes page cursors: the members of a key as a JSON array, in base64url without padding."""

import base64
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from library_site.db.integers import BIGINT_MAX
from library_site.db.keyset import Key, Start

T = TypeVar("T", bound="Cursor")

# One less than the largest bigint: the page beside an empty one begins with one more.
MAX_CURSOR_INTEGER = BIGINT_MAX - 1
CursorInteger = Annotated[int, msgspec.Meta(ge=-MAX_CURSOR_INTEGER, le=MAX_CURSOR_INTEGER)]
# Without a time zone, as the columns are.
CursorTime = Annotated[datetime, msgspec.Meta(tz=False)]


class InvalidCursor(ValueError):
    """The text is not a cursor of this list."""


class Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A position in a list. A subclass declares the columns that define it."""

    max_length: ClassVar[int] = 200

    @classmethod
    def decode(cls: type[T], text: str) -> T:
        """Raises InvalidCursor."""
        if len(text) > cls.max_length:
            raise InvalidCursor
        try:
            return msgspec.json.decode(decode_base64(text), type=cls)
        except ValueError as error:
            raise InvalidCursor from error

    @classmethod
    def decode_start(cls, text: str) -> Start:
        """Decodes what `encode_start` encoded. Raises InvalidCursor."""
        if len(text) > cls.max_length:
            raise InvalidCursor
        try:
            backward, *key = msgspec.json.decode(decode_base64(text), type=list[Any])
            return Start(msgspec.convert(key, cls).to_key(), msgspec.convert(backward, bool))
        except ValueError as error:
            raise InvalidCursor from error

    def encode(self) -> str:
        return encode_members(self)

    def to_key(self) -> Key:
        return msgspec.structs.astuple(self)


def encode_start(key: Key, backward: bool) -> str:
    """Encodes a direction in front of a key, where the cursor alone says how to read on."""
    return encode_members([backward, *key])


def encode_members(members: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(members)).decode().rstrip("=")


def decode_base64(text: str) -> bytes:
    """Raises ValueError."""
    return base64.urlsafe_b64decode(f"{text}==")
