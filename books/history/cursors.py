"""The positions in the lists of changes, as links have them."""

from library_site.api.cursors import Cursor, CursorInteger, CursorTime


class VersionCursor(Cursor):
    """A position in the history of a book."""

    version: CursorInteger


class TimeCursor(Cursor):
    """A position in the changes of all books."""

    at: CursorTime
    id: CursorInteger
