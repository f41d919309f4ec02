"""How the texts of a book are cleaned and compared.

`fold` is for sorting, equality and version 1, `fold_loosely` for what people type. Processes without settings read
files, so this imports nothing of Django.
"""

import re
import unicodedata

# Characters, and what `fold_loosely` makes of them. All are small letters, because the case is folded before.
CHARACTERS = {
    "apostrophes": ("`´ʹʻʼʽʾʿˈ‘’‚‛′‵", "'"),
    "quotes": ("“”„‟«»‹›″‶〝〞〟", '"'),
    "dashes": ("‐‑‒–—―⁃−", "-"),
    "invisible characters": ("\u00ad\u034f\u180e\u200b\u200c\u200d\u200e\u200f\u2060\ufeff", ""),
    "ae": ("æ", "ae"),
    "oe": ("œ", "oe"),
    "o with a stroke": ("ø", "o"),
    "l with a stroke": ("ł", "l"),
    "d with a stroke, and eth": ("đð", "d"),
    "thorn": ("þ", "th"),
    "i without a dot": ("ı", "i"),
    "Cyrillic yo": ("ё", "е"),
}
TRANSLATION = str.maketrans({old: new for characters, new in CHARACTERS.values() for old in characters})
# Of Latin and Greek letters. Marks of other scripts make other letters.
MARKS = re.compile("(?<=[a-z\u00df-\u02af\u0370-\u03ff])[\u0300-\u036f]+")
BLANKS = re.compile(r"\s+")
# What people put around words: it is no part of them.
AROUND_WORDS = "\"',;:.()[]"


def fold(text: str) -> str:
    """Returns the text for comparison: in NFC and case-folded, with its accents (Unicode, 3.13 and UAX 15)."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def clean_white_space(text: str) -> str:
    """Returns the text without white space at its ends, and with one space for each run of it."""
    return text if text.isalnum() else " ".join(text.replace("\ufeff", " ").replace("\u200b", "").split())


def fold_loosely(text: str) -> str:
    """Returns the text without case, width, marks and runs of blanks, and with one kind of each sign."""
    text = fold(text).translate(TRANSLATION)
    if not text.isascii():
        # The width and other forms of compatibility (UAX 15, NFKC).
        text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
        text = unicodedata.normalize("NFC", MARKS.sub("", text)).translate(TRANSLATION)
    return BLANKS.sub(" ", text)


def split_words(text: str) -> list[str]:
    """Returns the different words of a search, loosely folded.

    One character can fold to several words, but they repeat, so their number stays below what a statement may have.
    """
    return list(dict.fromkeys(word.strip(AROUND_WORDS) or word for word in fold_loosely(text).split()))
