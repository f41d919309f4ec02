"""A paginator whose count stops at MAX_COUNT."""

from typing import Any, cast

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.formats import number_format
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

MAX_COUNT = 10_000


class BoundedPaginator(Paginator):
    """Counts up to MAX_COUNT rows: a full count would read the whole table."""

    @cached_property
    def count(self) -> int:
        return count_rows(cast("QuerySet[Any]", self.object_list))


def count_rows(rows: "QuerySet[Any]") -> int:
    count = rows.order_by()[: MAX_COUNT + 1].count()
    return BoundedCount(MAX_COUNT) if count > MAX_COUNT else count


class BoundedCount(int):
    """A lower bound for a number of rows, shown as "over 10,000"."""

    def __str__(self) -> str:
        return _("over %(count)s") % {"count": number_format(int(self), force_grouping=True)}


def format_total(count: int) -> str:
    """Formats a number of rows with a thousands separator."""
    return str(count) if isinstance(count, BoundedCount) else number_format(count, force_grouping=True)
