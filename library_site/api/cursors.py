"""Encodes and decodes page cursors: a struct's members as a JSON array, in base64url without padding."""

import base64
from typing import TypeVar

import msgspec

T = TypeVar("T", bound="Cursor")


class InvalidCursor(ValueError):
    """The text is not a cursor of this list."""


class Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A position in a list. A subclass declares the columns that define it."""

    def encode(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def decode(cls: type[T], text: str, max_length: int) -> T:
        """Raises InvalidCursor."""
        if len(text) > max_length:
            raise InvalidCursor
        try:
            return msgspec.json.decode(base64.urlsafe_b64decode(f"{text}=="), type=cls)
        except ValueError as error:
            raise InvalidCursor from error
