"""A paginator that stops counting."""

from typing import Any, cast

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

MAX_COUNT = 10_000


class BoundedPaginator(Paginator):
    """Counts no further than anyone pages: a full count reads the whole table."""

    @cached_property
    def count(self) -> int:
        counted = cast("QuerySet[Any]", self.object_list).order_by()[: MAX_COUNT + 1].count()
        return BoundedCount(MAX_COUNT) if counted > MAX_COUNT else counted


class BoundedCount(int):
    """A count that stopped here."""

    def __str__(self) -> str:
        return f"over {int(self):,}"
