"""Reads pages of the books that are deleted."""

from django.db.models import Exists, OuterRef, Q

from books.history.entries import BY_TIME, Entry, read_entries
from books.models import Change
from library_site.db.keyset import Page, Start

# A book with a later change was restored.
LATER_CHANGES = Change.objects.filter(book_id=OuterRef("book_id"), version__gt=OuterRef("version"))


def read_deleted_page(start: Start, limit: int) -> Page[Entry]:
    """Returns a page of the deletions of books that are still deleted."""
    return read_entries([Q(~Exists(LATER_CHANGES), kind=Change.Kind.DELETED)], BY_TIME, start, limit)
