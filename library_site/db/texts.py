"""Texts that every database can store."""

MAX_ERROR_LENGTH = 500


def make_storable(text: str) -> str:
    """Replaces what no database stores: lone surrogates, and NUL."""
    return text.encode(errors="replace").decode().replace("\0", "?")


def describe_error(error: Exception) -> str:
    return truncate_text(f"{type(error).__name__}: {error}")


def truncate_text(text: str) -> str:
    """Truncates a text, and replaces characters that a database cannot store."""
    return make_storable(text)[:MAX_ERROR_LENGTH]
