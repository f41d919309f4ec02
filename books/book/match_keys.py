"""The rule for possible duplicates: the same ISBN, or the same title up to its subtitle by the same author.

An index of the database finds books whose match keys are equal. Databases cannot sort the words of a name, so the key
counts its letters, which are the same in any order. Python compares the words.
"""

import re
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from django.db import models

from books.book.texts import fold_loosely

# A subtitle follows a colon. Catalogues put these characters at the end of a title (ISBD, A.3).
SUBTITLE_MARK, TITLE_END = ":", " ./,;="
# What separates the words of a name: "Le Guin, Ursula K." and "Ursula K. Le Guin" have the same words.
NAME_SEPARATORS = " ,.-"
COUNTED_LETTERS = "aeinor"
# The longest part of a title that an index row of PostgreSQL holds in any script.
MAX_KEY_TITLE = 100
WORD, DIGITS = re.compile(r"[^\W_]+"), re.compile(r"\d+")
# What tells the volumes of a work apart: numbers, and the parts of the world, in any of these writings.
ROMAN = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx"
COUNTED = (
    ROMAN,
    "one two three four five six seven eight nine ten eleven twelve",
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
    "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "erster zweiter dritter vierter fünfter sechster siebter achter neunter zehnter elfter zwölfter",
    "erste zweite dritte vierte fünfte sechste siebte achte neunte zehnte elfte zwölfte",
    "un deux trois quatre cinq six sept huit neuf dix onze douze",
    "uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
)
DIRECTIONS = ("north nord norte norden", "south süd sud sur süden", "east ost este osten", "west ouest oeste westen")
PARTS: dict[str, str] = {
    **{fold_loosely(word): str(number) for words in COUNTED for number, word in enumerate(words.split(), 1)},
    **{fold_loosely(word): words.split()[0] for words in DIRECTIONS for word in words.split()},
    **{f"{words.split()[0]}ern": words.split()[0] for words in DIRECTIONS},
    **{word: word for word in ("upper", "lower", "inner", "outer")},
}
# Words that catalogues leave out, turn round or write as a sign.
ARTICLES = frozenset("the a an der die das ein eine le la les un une el los las il lo".split())
CONJUNCTIONS = frozenset("and und et y e".split())
UMLAUTS = re.compile("([aou])e")
TURNED_TITLE = re.compile(rf"(.+), ({'|'.join(sorted(ARTICLES))})")
PLAIN_TITLE = re.compile(rf"({'|'.join(sorted(ARTICLES))}) (.+)")
# What joins the parts of a title, and names. A book is searched by each.
CONJUNCTION_SIGNS, NAME_SIGNS = (" & ", " and ", " und ", " et "), (" & ", " and ", " und ", "; ")
MAIN_TITLE_SQL = {
    "postgresql": "split_part({title}, ':', 1)",
    "sqlite": "substr({title}, 1, instr({title} || ':', ':') - 1)",
}


def compile_match_key(vendor: str, title: str, author: str) -> str:
    """Returns the match key in SQL, from the SQL of the folded title and author."""
    main_title = f"substr(rtrim({MAIN_TITLE_SQL[vendor].format(title=title)}, '{TITLE_END}'), 1, {MAX_KEY_TITLE})"
    name = author
    for separator in NAME_SEPARATORS:
        name = f"replace({name}, '{separator}', '')"
    others = [f"replace({author}, '{letter}', '')" for letter in COUNTED_LETTERS]
    counts = [f"length({name})", *(f"length({author}) - length({other})" for other in others)]
    return " || ' ' || ".join([main_title, *(f"CAST({count} AS text)" for count in counts)])


class MatchKey(models.Func):
    """The match key of a book's search text, as an expression with an index."""

    output_field = models.TextField()

    def __init__(self) -> None:
        super().__init__("title", "author")

    def as_sql(self, compiler: Any, connection: Any, *_: Any, **__: Any) -> Any:
        title, author = (compiler.compile(column)[0] for column in self.get_source_expressions())
        return f"({compile_match_key(connection.vendor, title, author)})", []


def build_match_key(title: str, author: str) -> str:
    """Returns the match key of a loosely folded title and author, as the database computes it."""
    main_title = split_title(title)[0][:MAX_KEY_TITLE]
    name = author.translate(str.maketrans("", "", NAME_SEPARATORS))
    return " ".join([main_title, str(len(name)), *(str(author.count(letter)) for letter in COUNTED_LETTERS)])


def split_title(title: str) -> tuple[str, str]:
    """Returns the title without its subtitle, and the subtitle."""
    main_title, _, subtitle = title.partition(SUBTITLE_MARK)
    return main_title.rstrip(TITLE_END), subtitle


def list_match_keys(title: str, author: str) -> set[str]:
    """Returns the match keys of a loosely folded title and author in the usual writings."""
    main_title, *_ = split_title(title)
    titles = [main_title]
    if match := TURNED_TITLE.fullmatch(main_title):
        titles.append(f"{match[2]} {match[1]}")
    elif match := PLAIN_TITLE.fullmatch(main_title):
        titles.append(f"{match[2]}, {match[1]}")
    variants = [variant for text in titles for variant in list_variants(text, CONJUNCTION_SIGNS)]
    return {build_match_key(*pair) for pair in product(variants, list_variants(author, NAME_SIGNS))}


def list_variants(text: str, signs: Sequence[str]) -> set[str]:
    """Returns the text with each of the signs in place of the others."""
    parts = re.split("|".join(signs), text)
    return {text, *(sign.join(parts) for sign in signs if len(parts) > 1)}


class Work(NamedTuple):
    """Title and author of a book, as far as the writings of two catalogues agree."""

    title: tuple[str, ...]
    # The numbers and parts of the world in a subtitle tell the volumes of a work apart.
    parts: tuple[str, ...]
    names: tuple[str, ...]


def build_work(title: str, author: str) -> Work:
    """Two books of the same work are possible duplicates."""
    title, author = fold_loosely(title), fold_loosely(author)
    main_title, subtitle = split_title(title)
    words = list_words(main_title)
    if len(words) > 1 and TURNED_TITLE.fullmatch(main_title):
        words = words[:-1]
    elif len(words) > 1 and words[0] in ARTICLES:
        words = words[1:]
    # A letter alone is no number.
    words_after = [
        word for place, word in enumerate(WORD.findall(subtitle)) if place or len(word) > 1 or word.isdigit()
    ]
    parts = [PARTS.get(word) or "".join(DIGITS.findall(word)) for word in words_after]
    names = sorted(list_words(author))
    return Work(tuple(words) or (title,), tuple(filter(None, parts)), tuple(names) or (author,))


def list_words(text: str) -> list[str]:
    """Returns the words of a loosely folded text; ü is ue, & is no word."""
    plain = UMLAUTS.sub(r"\1", text)
    return [word for word in WORD.findall(plain) if word not in CONJUNCTIONS]
