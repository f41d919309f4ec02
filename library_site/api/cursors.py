"""Encodes and decodes page cursors: the fields of a key as a JSON array, in base64url without padding."""

import base64
from datetime import datetime
from types import GenericAlias
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from library_site.db.integers import BIGINT_MAX
from library_site.db.keyset import Key, Start

T = TypeVar("T", bound="Cursor")

# One less than the largest bigint: the page next to an empty page begins with this number plus one.
MAX_CURSOR_INTEGER = BIGINT_MAX - 1
CursorInteger = Annotated[int, msgspec.Meta(ge=-MAX_CURSOR_INTEGER, le=MAX_CURSOR_INTEGER)]
# In UTC, without a time zone.
CursorTime = Annotated[datetime, msgspec.Meta(tz=False)]


class InvalidCursor(ValueError):
    """The string is not a cursor of this list."""


def decode_cursor(text: str, cursor_type: Any, max_length: int) -> Any:
    """Raises InvalidCursor."""
    if len(text) > max_length:
        raise InvalidCursor
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(f"{text}=="), type=cursor_type)
    except ValueError as error:
        raise InvalidCursor from error


def encode_cursor(fields: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(fields)).decode().rstrip("=")


class Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A position in a list. A subclass declares the columns that define it."""

    max_length: ClassVar[int] = 200

    @classmethod
    def decode(cls: type[T], text: str) -> T:
        """Raises InvalidCursor."""
        cursor: T = decode_cursor(text, cls, cls.max_length)
        return cursor

    def encode(self) -> str:
        return encode_cursor(self)

    def to_key(self) -> Key:
        return msgspec.structs.astuple(self)


class PageCursor:
    """Encodes the start of a page: its direction, and a key with values of these types."""

    def __init__(self, *key_types: Any, max_length: int = Cursor.max_length) -> None:
        self.start_type, self.max_length = GenericAlias(tuple, (bool, *key_types)), max_length

    def decode(self, text: str) -> Start:
        """Raises InvalidCursor."""
        backward, *key = decode_cursor(text, self.start_type, self.max_length)
        return Start(tuple(key), backward)

    def encode(self, key: Key, *, backward: bool) -> str:
        return encode_cursor((backward, *key))


ID_CURSOR = PageCursor(CursorInteger)
