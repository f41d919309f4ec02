"""The cursors of the lists of changes."""

from library_site.api.cursors import CursorInteger, CursorTime, PageCursor


class VersionCursor(PageCursor):
    """A position in the history of a book."""

    version: CursorInteger


class TimeCursor(PageCursor):
    """A position in the changes of all books."""

    at: CursorTime
    id: CursorInteger
