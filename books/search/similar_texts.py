"""Finds titles and authors that are similar to a search with few matches or none: "Did you mean …?"

A misspelled word nearly always has one half that is right, or both ends, so the trigram indexes find books with these
and with another word of the search. Python compares their words by trigrams, as PostgreSQL's pg_trgm does: comparing
whole texts by its index takes seconds in a large library.
"""

import re
from collections.abc import Iterator

from books.book.texts import fold_loosely, split_words
from books.models import Book
from books.search.texts import find_words

SEARCHED_FIELDS = ("title", "author")
WORD = re.compile(r"[^\W_]+")
# The indexes need three characters, and shorter words are rarely misspelled.
MIN_WORD, MIN_HALF = 4, 3
MAX_TEXT, MAX_WORDS = 100, 3
# So many books are compared for each half of a word.
MAX_COMPARED = 60
# How similar each word is to one of a suggestion. Two letters that changed places in a short word leave a quarter.
MIN_SIMILARITY, MIN_SIMILARITY_OF_LONG, LONG = 0.25, 0.3, 6
MAX_SUGGESTIONS = 2


def find_similar_texts(text: str) -> list[str]:
    """Returns titles and authors that a search does not find and that are most similar to it, as books write them."""
    searched = fold_loosely(text[:MAX_TEXT])
    words = [list_trigrams(word) for word in WORD.findall(searched) if len(word) >= MIN_WORD]
    scores: dict[tuple[float, float, str], str] = {}
    for found in set(iter_candidates(searched)):
        folded_text = fold_loosely(found)
        others = [list_trigrams(word) for word in WORD.findall(folded_text)]
        similarities = [max(compare(word, other) for other in others) for word in words]
        is_near = all(map(is_similar, words, similarities)) and bool(words)
        if is_near and not all(word in folded_text for word in split_words(text)):
            whole = compare(set().union(*words), set().union(*others))
            scores[-sum(similarities), -whole, folded_text] = found
    return [scores[key] for key in sorted(scores)[:MAX_SUGGESTIONS]]


def is_similar(trigrams: set[str], similarity: float) -> bool:
    return similarity >= (MIN_SIMILARITY_OF_LONG if len(trigrams) > LONG else MIN_SIMILARITY)


def compare(first: set[str], second: set[str]) -> float:
    """Returns the share of all trigrams that both have."""
    return len(first & second) / len(first | second)


def iter_candidates(searched: str) -> Iterator[str]:
    """Yields texts with half of a word and another word, or if there are none, with half of the longest word."""
    words = sorted(WORD.findall(searched), key=len, reverse=True)
    long_words = [word for word in words if len(word) >= MIN_WORD][:MAX_WORDS]
    is_found = False
    for word in long_words:
        other = next((other for other in words if other != word and len(other) >= MIN_HALF), None)
        for found in iter_half_matches(word, *([other] if other else [])):
            is_found = True
            yield found
    if not is_found and len(words) > 1 and long_words:
        yield from iter_half_matches(long_words[0])


def iter_half_matches(word: str, *others: str) -> Iterator[str]:
    """Yields titles and authors with the first half of the word, the last, or both ends, and with the others."""
    half, end = (max(MIN_HALF, length) for length in ((len(word) + 1) // 2, len(word) // 2 - 1))
    for field in SEARCHED_FIELDS:
        for parts in ([word[:half]], [word[-half:]], [word[:end], word[-end:]]):
            found = Book.objects.filter(find_words([*parts, *others], field))
            yield from found.values_list(field, flat=True)[:MAX_COMPARED]


def list_trigrams(text: str) -> set[str]:
    padded = (f"  {word} " for word in WORD.findall(text))
    return {word[start : start + 3] for word in padded for start in range(len(word) - 2)}
