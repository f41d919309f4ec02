"""Folds and cleans the texts of a book. Processes without settings read files, so this imports nothing of Django."""

import unicodedata


def fold(text: str) -> str:
    """Returns the text for comparison: in NFC and case-folded, with its accents (Unicode, 3.13 and UAX 15)."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def clean_white_space(text: str) -> str:
    """Returns the text without white space at its ends, and with one space for each run of it."""
    return text if text.isalnum() else " ".join(text.replace("\ufeff", " ").replace("\u200b", "").split())
