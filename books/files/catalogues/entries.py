"""What the catalogues say about a book."""

from typing import Any, NamedTuple


class Entry(NamedTuple):
    """What the catalogue at a host says about a book: valid values of its members."""

    host: str
    values: dict[str, Any]


class Lookup(NamedTuple):
    """The first entry that was found, and why catalogues before it said nothing about the book."""

    entry: Entry | None = None
    problems: tuple[str, ...] = ()
