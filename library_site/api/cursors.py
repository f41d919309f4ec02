"""Encodes and decodes page cursors: the fields of a key as a JSON array, in base64url without padding."""

import base64
from datetime import datetime
from typing import Annotated, ClassVar, TypeVar

import msgspec

from library_site.db.integers import BIGINT_MAX
from library_site.db.keyset import Key, Start

T = TypeVar("T", bound="Cursor")
P = TypeVar("P", bound="PageCursor")

# One less than the largest bigint: the page next to an empty page begins with this number plus one.
MAX_CURSOR_INTEGER = BIGINT_MAX - 1
CursorInteger = Annotated[int, msgspec.Meta(ge=-MAX_CURSOR_INTEGER, le=MAX_CURSOR_INTEGER)]
# In UTC, without a time zone.
CursorTime = Annotated[datetime, msgspec.Meta(tz=False)]


class InvalidCursor(ValueError):
    """The string is not a cursor of this list."""


class Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A position in a list. A subclass declares the columns that define it."""

    max_length: ClassVar[int] = 200

    @classmethod
    def decode(cls: type[T], text: str) -> T:
        """Raises InvalidCursor."""
        if len(text) > cls.max_length:
            raise InvalidCursor
        try:
            return msgspec.json.decode(base64.urlsafe_b64decode(f"{text}=="), type=cls)
        except ValueError as error:
            raise InvalidCursor from error

    def encode(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    def to_key(self) -> Key:
        return msgspec.structs.astuple(self)


class PageCursor(Cursor):
    """The direction, and the key after which the page begins. A subclass declares the key."""

    backward: bool

    @classmethod
    def build(cls: type[P], key: Key, *, backward: bool) -> P:
        return cls(backward, *key)

    def to_start(self) -> Start:
        backward, *key = msgspec.structs.astuple(self)
        return Start(tuple(key), backward)


class IdCursor(PageCursor):
    """A position in a list that is sorted by id."""

    id: CursorInteger
