"""The result of a lookup in the catalogues."""

from typing import Any, NamedTuple

from django.utils.translation import gettext as _


class CatalogueEntry(NamedTuple):
    """A book in the catalogue at a host: valid values of its fields."""

    host: str
    values: dict[str, Any]


class CatalogueResult(NamedTuple):
    """The first entry that was found, and why the catalogues asked before it returned none."""

    entry: CatalogueEntry | None = None
    problems: tuple[str, ...] = ()


class CatalogueFailed(Exception):
    """A catalogue did not say whether it has the book. `text` is marked for translation; the log has it in English."""

    def __init__(self, text: str, **details: Any) -> None:
        super().__init__(text % details)
        self.text, self.details = text, details

    def describe(self) -> str:
        return _(self.text) % self.details
