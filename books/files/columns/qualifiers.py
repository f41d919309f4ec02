"""Chooses between several ISBNs by what is written beside them: `(set)`, `v. 1`, `e-book`."""

import re
from collections.abc import Sequence

from books.book.isbn import MAX_LIST_TEXT, find_isbn

ELECTRONIC = re.compile(
    r"\be-?books?\b|electron|elektron|électron|epub|pdf|online|kindle|mobi|\bweb\b|digital", re.IGNORECASE
)
OTHER_FORM = re.compile(r"audio|\bcds?\b|mp3|hörbuch|braille|large print|großdruck", re.IGNORECASE)
OF_SET = re.compile(
    r"\bsets?\b|complet|series|gesamt|ensemble|collection|multi-?vol|\b[0-9]{1,2} (?:v|vols?|volumes|bde?|tomes)\b",
    re.IGNORECASE,
)
OF_VOLUME = re.compile(r"\b(?:v|vols?|volumes?|bd|band|tome?|t|pt|part|teil|no)\b\.? ?[0-9ivxlc]+\b", re.IGNORECASE)


def choose_qualified(qualified: Sequence[tuple[str, str]], *, is_electronic: bool = False) -> tuple[str, str]:
    """Returns the best text with its qualifier, ("", "") if there is none.

    The first text with an ISBN of this edition is the best; then the first with any ISBN; then the first text.
    """
    if len(qualified) == 1:
        return qualified[0]
    volumes = {match[0] for _text, note in qualified if (match := OF_VOLUME.search(note[:MAX_LIST_TEXT]))}

    def rank(item: tuple[str, str]) -> tuple[bool, bool, bool]:
        text, note = item[0], item[1][:MAX_LIST_TEXT]
        is_of_other_form = bool(OTHER_FORM.search(note)) or bool(ELECTRONIC.search(note)) != is_electronic
        return not find_isbn(text), bool(OF_SET.search(note)) != (len(volumes) > 1), is_of_other_form

    return min(qualified, key=rank, default=("", ""))


def choose_isbn(texts: Sequence[str]) -> str:
    """Returns the ISBN of this edition in these texts, each of which may have a qualifier; empty if there is none."""
    return find_isbn(choose_qualified([(text, text) for text in texts])[0])
