"""Formats errors as texts for people, to store them."""

from library_site.db.texts import make_storable

MAX_ERROR_LENGTH = 500


def describe_error(error: Exception) -> str:
    return truncate_text(f"{type(error).__name__}: {error}")


def truncate_text(text: str) -> str:
    """Truncates a text, and replaces characters that a database cannot store."""
    return make_storable(text)[:MAX_ERROR_LENGTH]
