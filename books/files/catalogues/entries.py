"""What the catalogues say about a book."""

from typing import Any, NamedTuple

from django.utils.translation import gettext as _


class CatalogueEntry(NamedTuple):
    """What the catalogue at a host says about a book: valid values of its members."""

    host: str
    values: dict[str, Any]


class CatalogueLookup(NamedTuple):
    """The first entry that was found, and why catalogues before it said nothing about the book."""

    entry: CatalogueEntry | None = None
    problems: tuple[str, ...] = ()


class CatalogueFailed(Exception):
    """A catalogue did not say whether it has the book. `text` is marked for translation: the log has it in English."""

    def __init__(self, text: str, **details: Any) -> None:
        super().__init__(text % details)
        self.text, self.details = text, details

    def describe(self) -> str:
        """Says to people why."""
        return _(self.text) % self.details
