"""Edits of books, in the format in which operations store them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from books.book.fields import MAX_LENGTHS
from books.book_values import BookValues


class InvalidEdit(Exception):
    """The edit would make a field of a book blank or too long."""


class Edit(NamedTuple):
    """New values of fields, or a text to replace wherever a field contains it. Comparison is exact."""

    values: Mapping[str, Any]
    field: str = ""
    find: str = ""
    replacement: str = ""

    def to_parameters(self) -> dict[str, Any]:
        if not self.field:
            return {"set": dict(self.values)}
        return {"replace": {"member": self.field, "find": self.find, "with": self.replacement}}

    def list_fields(self) -> list[str]:
        return [self.field] if self.field else list(self.values)

    def build_values(self, book: BookValues) -> Mapping[str, Any]:
        """Returns the new values of the book's fields. Raises InvalidEdit."""
        if not self.field:
            return self.values
        text: str = getattr(book, self.field)
        new_text = text.replace(self.find, self.replacement)
        if new_text != text and not 0 < len(new_text.strip()) <= len(new_text) <= MAX_LENGTHS[self.field]:
            raise InvalidEdit
        return {self.field: new_text}


def read_edit(parameters: Mapping[str, Any]) -> Edit:
    if "set" in parameters:
        return Edit(parameters["set"])
    replace = parameters["replace"]
    return Edit({}, replace["member"], replace["find"], replace["with"])
