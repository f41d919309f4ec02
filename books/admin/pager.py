"""Pagination for lists of the admin: a cursor in the address, and links to the first, previous and next page."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _

from books.admin.descriptions import Link
from library_site.api.cursors import ID_CURSOR, Cursor
from library_site.db.keyset import ID_ORDER, Key, Page, Start

PAGE_SIZE = 50
T = TypeVar("T")
M = TypeVar("M", bound=Model)


class Pager:
    """Reads one page. An invalid cursor returns to the first page."""

    page: Page[Any] = Page([])

    def __init__(self, query: QueryDict, cursor: Cursor = ID_CURSOR, *, is_newest_first: bool = False) -> None:
        self.query, self.cursor, self.is_newest_first = query, cursor, is_newest_first
        try:
            self.start = cursor.decode_start(query.get("cursor", ""))
        except ValueError:
            self.start = Start()

    def read(self, read: Callable[[Start, int], Page[T]], limit: int) -> Sequence[T]:
        """Returns the rows of the page. `read` takes a start and a limit."""
        self.page = read(self.start, limit)
        return self.page.rows

    def read_rows(self, rows: QuerySet[M], limit: int) -> Sequence[M]:
        return self.read(partial(ID_ORDER.read_page, rows, descending=self.is_newest_first), limit)

    @property
    def is_first(self) -> bool:
        return not self.start.key

    @property
    def is_last(self) -> bool:
        return not self.page.next_key

    @property
    def has_others(self) -> bool:
        return bool(self.page.previous_key or self.page.next_key)

    def list_links(self) -> Iterator[Link]:
        words = (
            (_("Newest"), _("Newer"), _("Older"))
            if self.is_newest_first
            else (_("First page"), _("Previous page"), _("Next page"))
        )
        if not self.is_first:
            yield Link(words[0], self.build_address())
        if self.page.previous_key:
            yield Link(words[1], self.build_address(self.page.previous_key, backward=True))
        if self.page.next_key:
            yield Link(words[2], self.build_address(self.page.next_key))

    def build_address(self, key: Key | None = None, *, backward: bool = False) -> str:
        values = {name: value for name, value in self.query.items() if value and name != "cursor"}
        cursor = {"cursor": self.cursor.encode((backward, *key))} if key else {}
        return f"?{urlencode({**values, **cursor})}"
