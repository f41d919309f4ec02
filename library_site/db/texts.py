"""Texts that every database can store."""


def make_storable(text: str) -> str:
    """Replaces what no database stores: lone surrogates, and NUL."""
    return text.encode(errors="replace").decode().replace("\0", "?")
