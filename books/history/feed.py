"""The newest changes as a feed: all changes of one operation are one item."""

from collections.abc import Sequence

from books.history.entries import Entry, Filters, read_recent_page
from books.models import Change
from library_site.db.keyset import Key, Start

# So many changes are looked at in a page, and so many pages, before a feed ends with fewer items than it may have.
SCANNED_CHANGES, MAX_PAGES = 200, 5


def read_feed(limit: int) -> list[Entry]:
    """Returns the newest change of each of the last operations, and the last single changes; the newest first."""
    feed: list[Entry] = []
    operations: set[int | None] = set()
    start = Start()
    for _ in range(MAX_PAGES):
        page = read_recent_page(Filters(), start, SCANNED_CHANGES)
        for entry in page.rows:
            if entry.operation_id is None or entry.operation_id not in operations:
                feed.append(entry)
                operations.add(entry.operation_id)
        if len(feed) >= limit or page.behind is None:
            break
        start = Start(find_behind(page.rows) or page.behind)
    return feed[:limit]


def find_behind(entries: Sequence[Entry]) -> Key | None:
    """Returns where the changes before an operation begin, if the page has no others: it can have made a million."""
    [operation_id, *others] = {entry.operation_id for entry in entries}
    if operation_id is None or others:
        return None
    return Change.objects.filter(operation_id=operation_id).order_by("pk").values_list("at", "pk").first()
