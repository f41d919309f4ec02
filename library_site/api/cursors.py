"""Cursors of keyset pages."""


class InvalidCursor(ValueError):
    """The text is none of ours, or of another order."""
