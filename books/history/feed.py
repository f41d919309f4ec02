"""The newest changes as a feed. All changes of an operation form one item."""

from collections.abc import Sequence

from books.history.change_pages import Entry, Filters, read_recent_page
from books.models import Change
from library_site.db.keyset import Key, Start

# The feed reads so many changes per page, and so many pages. After that it may end with fewer items than allowed.
SCANNED_CHANGES, MAX_PAGES = 200, 5


def read_feed(limit: int) -> list[Entry]:
    """Returns the newest change of each recent operation, and recent single changes, newest first."""
    feed: list[Entry] = []
    operations: set[int | None] = set()
    start = Start()
    for _ in range(MAX_PAGES):
        page = read_recent_page(Filters(), start, SCANNED_CHANGES)
        for entry in page.rows:
            if entry.operation_id is None or entry.operation_id not in operations:
                feed.append(entry)
                operations.add(entry.operation_id)
        if len(feed) >= limit or page.next_key is None:
            break
        start = Start(find_next_key(page.rows) or page.next_key)
    return feed[:limit]


def find_next_key(entries: Sequence[Entry]) -> Key | None:
    """Returns a cursor after an operation that fills the page, because an operation can have a million changes."""
    [operation_id, *others] = {entry.operation_id for entry in entries}
    if operation_id is None or others:
        return None
    return Change.objects.filter(operation_id=operation_id).order_by("pk").values_list("at", "pk").first()
