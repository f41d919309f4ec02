"""What the first page of the admin shows of the books."""

from typing import Any, NamedTuple
from urllib.parse import urlencode

from django import template
from django.http import HttpRequest
from django.template import Context
from django.urls import reverse
from django.utils import timezone

from books.admin.descriptions import Description, describe_entries
from books.admin.operations.views import describe_row
from books.admin.views import BULK_EDIT, SEE_BOOKS, VIEW_HISTORY, has_any_permission
from books.history.entries import Filters, read_recent_page
from books.models import Book, Operation
from books.search.quality import QUALITIES, build_quality_condition, find_first_of_newest
from library_site.admin.paginator import count_rows
from library_site.db.integers import BIGINT_MAX
from library_site.db.keyset import Start

register = template.Library()

MAX_CHANGES = 8
MAX_SHOWN_OPERATIONS = 5
# Those that need no look at all books.
COUNTED_QUALITIES = ("no_isbn", "year", "duplicates")


class QualityCount(NamedTuple):
    """A number of books, and the address of the list of them."""

    label: str
    books: int
    address: str


@register.inclusion_tag("admin/books/first_page.html", takes_context=True)
def show_first_page(context: Context) -> dict[str, Any]:
    """Shows each part to those who may see it."""
    request: HttpRequest = context["request"]
    may_view = has_any_permission(request, SEE_BOOKS)
    return {
        "perms": context["perms"],
        "may_view": may_view,
        "counts": count_qualities() if may_view else [],
        "may_view_history": request.user.has_perm(VIEW_HISTORY),
        "operations": list_operations() if has_any_permission(request, (VIEW_HISTORY, BULK_EDIT)) else [],
        "changes": list_recent_changes() if request.user.has_perm(VIEW_HISTORY) else [],
    }


def list_recent_changes() -> list[Description]:
    return describe_entries(read_recent_page(Filters(), Start(), MAX_CHANGES).rows)


def list_operations() -> list[dict[str, Any]]:
    """Returns the operations under way, the oldest first."""
    operations = Operation.objects.exclude(next_at=None).select_related("actor").order_by("pk")
    return [describe_row(operation) for operation in operations[:MAX_SHOWN_OPERATIONS]]


def count_qualities() -> list[QualityCount]:
    today, newest_from = timezone.now().date(), find_first_of_newest() or -BIGINT_MAX
    address = reverse("admin:books_book_changelist")
    return [
        QualityCount(
            str(QUALITIES[name]),
            count_rows(Book.objects.filter(build_quality_condition(name, today, newest_from))),
            f"{address}?{urlencode({'quality': name})}",
        )
        for name in COUNTED_QUALITIES
    ]
