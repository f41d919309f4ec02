"""Builds the first page of the admin: numbers of books, charts and the latest changes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from books.admin.charts import Chart, build_chart
from books.admin.descriptions import (
    ActorName,
    Description,
    describe_entries,
    find_name,
    list_shown_operations,
)
from books.admin.list.filters import begin_day
from books.admin.operations.descriptions import list_first_titles
from books.admin.operations.views import describe_row
from books.admin.views import SEE_BOOKS
from books.history.change_pages import UNKNOWN_ACTOR, Filters, read_actor_names
from books.history.feed import read_feed
from books.history.loans import find_loan
from books.models import Book
from books.permissions import BULK_EDIT, CHANGE_BOOK, MERGE_BOOKS, VIEW_HISTORY
from books.search.quality import MIN_PROBABLE_YEAR, QUALITIES
from books.summaries import BOOKS, CHANGES, DAYS, OTHERS, find_count_time, read_duplicates, read_summary
from library_site.admin.paginator import BoundedCount, count_rows
from library_site.admin.site import has_any_permission
from library_site.db.keyset import Start

MAX_CHANGES = 8
MAX_SHOWN_OPERATIONS = 5
MAX_SHOWN_GENRES = 8
# The chart has so many decades. The first column includes all earlier books.
MAX_DECADES = 28
# Fewer columns are no chart.
MIN_CHART_DAYS = 3
# So many users have a colour of their own in the chart. All others share the last colour.
MAX_PEOPLE = 4


class Number(NamedTuple):
    """A number of books, and the address of the list that shows them."""

    label: str
    books: int
    address: str


def describe_first_page(request: HttpRequest) -> dict[str, Any]:
    now = timezone.now()
    may_view, may_view_history = has_any_permission(request, SEE_BOOKS), request.user.has_perm(VIEW_HISTORY)
    return {
        "may_view": may_view,
        "may_lend": request.user.has_perm(CHANGE_BOOK),
        "may_view_history": may_view_history,
        "operations": list_running_operations() if has_any_permission(request, (VIEW_HISTORY, BULK_EDIT)) else [],
        **(describe_books(now, may_merge=request.user.has_perm(MERGE_BOOKS)) if may_view else {}),
        **(describe_changes(now) if may_view_history else {}),
    }


def describe_books(now: datetime, *, may_merge: bool) -> dict[str, Any]:
    summary = read_summary(BOOKS, now)
    numbers = summary.numbers
    qualities = [
        Number(str(QUALITIES[name]), books, list_address(quality=name)) for name, books in numbers["qualities"].items()
    ]
    if may_merge:
        duplicates = read_duplicates(now).number
        qualities.append(Number(_("possible duplicates"), duplicates, reverse("admin:duplicates")))
    return {
        "numbers": [
            Number(_("Books"), numbers["books"], list_address()),
            Number(_("Lent"), numbers["lent"], list_address(availability="lent")),
            count_new(now),
        ],
        "counts": qualities,
        "to_look_at": sum_counts([quality.books for quality in qualities]),
        "genres": build_genre_bars(numbers["genres"], numbers["books"]),
        "decades": build_decades(numbers["decades"], now.year),
        "counted_at": find_count_time(summary, now),
    }


def describe_changes(now: datetime) -> dict[str, Any]:
    days = group_hours(read_summary(CHANGES, now).numbers.get("people", {}), now)
    totals = Counter[str]()
    for day in days.values():
        totals.update(day)
    pks = [int(pk) for pk in totals if pk != OTHERS]
    actors = read_actor_names(pks)
    names = {str(pk): find_name(actors.get(pk, UNKNOWN_ACTOR)) for pk in pks}
    people = sorted(names, key=lambda pk: (-totals[pk], names[pk]))[:MAX_PEOPLE]
    series = [describe_series(names[pk], number, totals[pk]) for number, pk in enumerate(people, 1)]
    if others := totals.total() - sum(totals[pk] for pk in people):
        series.append({"name": _("Others"), "number": MAX_PEOPLE + 1, "changes": others, "address": ""})
    rows = [count_by_series(day, people)[: len(series)] for day in days.values()]
    return {
        "feed": list_feed(),
        "series": series,
        "days": build_chart([format_day(day) for day in days], rows, [""] * len(days), can_cut=True),
        "has_chart": sum(map(any, rows)) >= MIN_CHART_DAYS,
    }


def group_hours(hours: Mapping[str, Mapping[str, int]], now: datetime) -> dict[date, Counter[str]]:
    """Returns the changes by actor of each of the last days. Days are those of the user's time zone."""
    today, zone = timezone.localdate(now), timezone.get_current_timezone()
    days = {today - timedelta(days=age): Counter[str]() for age in reversed(range(DAYS))}
    for hour, counts in hours.items():
        day = datetime.fromisoformat(hour).astimezone(zone).date()
        if day in days:
            days[day].update(counts)
    return days


def list_address(**filters: Any) -> str:
    return reverse("admin:books_book_changelist", query=filters)


def count_new(now: datetime) -> Number:
    """Counts the books of the last seven days. Days begin at midnight in the user's time zone."""
    day = timezone.localdate(now) - timedelta(days=6)
    books = count_rows(Book.objects.filter(created_at__gte=begin_day(day)))
    return Number(_("Added in seven days"), books, list_address(added_since=day.isoformat()))


def sum_counts(counts: Sequence[int]) -> int:
    is_bounded = any(isinstance(count, BoundedCount) for count in counts)
    return BoundedCount(sum(counts)) if is_bounded else sum(counts)


def build_genre_bars(genres: Sequence[tuple[str, int]], books: int) -> list[dict[str, Any]]:
    shown = genres[:MAX_SHOWN_GENRES]
    others = books - sum(count for _name, count in shown)
    highest = max((count for _name, count in shown), default=0) or 1
    bars = [
        {"name": name, "books": count, "width": 100 * count / highest, "address": list_address(genre=name)}
        for name, count in shown
    ]
    if others > 0:
        # All others together are no genre, and would make the bars of the genres short.
        bars.append({"name": _("Others"), "books": others, "width": 0, "address": reverse("admin:genres")})
    return bars


def build_decades(decades: Sequence[tuple[int, int]], this_year: int) -> Chart | None:
    """Returns the decades of probable years. Improbable years appear under "needs attention"."""
    probable = {
        decade: books for decade, books in decades if MIN_PROBABLE_YEAR <= decade <= this_year + 1 and books > 0
    }
    if not probable:
        return None
    last = max(probable)
    first = max(min(probable), last - 10 * (MAX_DECADES - 1))
    shown = range(first, last + 10, 10)
    columns = [(f"{decade}–{decade + 9}", probable.get(decade, 0), decade, decade + 9) for decade in shown]
    if earlier := sum(books for decade, books in probable.items() if decade < first):
        text = _("before %(year)s") % {"year": first}
        columns.insert(0, (text, earlier, MIN_PROBABLE_YEAR, first - 1))
    labels, counts, starts, ends = zip(*columns, strict=True)
    addresses = [list_address(year_from=start, year_to=end) for start, end in zip(starts, ends, strict=True)]
    return build_chart(labels, [(count,) for count in counts], addresses)


def describe_series(name: ActorName, number: int, changes: int) -> dict[str, Any]:
    return {"name": name.text, "number": number, "changes": changes, "address": name.link.address}


def count_by_series(day: Counter[str], people: Sequence[str]) -> list[int]:
    """Returns the changes of a day by each of these people, and by all others together."""
    values = [day[pk] for pk in people]
    return [*values, day.total() - sum(values)]


def format_day(day: date) -> str:
    # Translators: a short date without its year, in the letters of Django's date filter.
    return date_format(datetime(day.year, day.month, day.day, tzinfo=UTC), _("j M"))


def list_feed() -> list[dict[str, Any]]:
    entries = read_feed(Filters(), Start(), MAX_CHANGES).rows
    titles = list_first_titles({entry.operation_id for entry in entries if entry.operation_id})
    return [
        describe_item(change, titles.get(change.entry.operation_id or 0, "")) for change in describe_entries(entries)
    ]


def describe_item(change: Description, titles: str) -> dict[str, Any]:
    """Describes a single change, or all changes of an operation with the first of its books."""
    return {
        "change": change,
        "subject": change.operation or change.book,
        "detail": titles if change.operation else describe_changed_values(change),
        # An API key works without its user.
        "who": change.names[-1 if change.entry.actor.api_key else 0][1] if change.names else change.channel,
    }


def describe_changed_values(change: Description) -> str:
    lines = [line for line in change.lines if line.left is not None and line.right is not None]
    if find_loan(change.entry.after) or not lines or change.merged_into:
        return ""
    first = f"{lines[0].label}: {lines[0].left} → {lines[0].right}"
    return first if len(lines) == 1 else f"{first}, …"


def list_running_operations() -> list[dict[str, Any]]:
    operations = list_shown_operations().exclude(next_at=None).order_by("pk")
    return [describe_row(operation) for operation in operations[:MAX_SHOWN_OPERATIONS]]
