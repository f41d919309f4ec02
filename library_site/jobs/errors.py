"""Errors as texts that are stored for people to read."""

from library_site.db.texts import make_storable

MAX_ERROR_LENGTH = 500


def describe_error(error: Exception) -> str:
    return truncate_text(f"{type(error).__name__}: {error}")


def truncate_text(text: str) -> str:
    """The beginning of a text that may have characters which no database stores."""
    return make_storable(text)[:MAX_ERROR_LENGTH]
