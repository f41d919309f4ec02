"""The rule for possible duplicates: the same ISBN, or the same title up to its subtitle by the same author.

An index of the database finds books whose match keys are equal. Databases cannot sort the words of a name, so the key
counts its letters, which are the same in any order. Python compares the words.
"""

import re
from typing import Any, NamedTuple

from django.db import models

# A subtitle follows a colon. Catalogues put these characters at the end of a title (ISBD, A.3).
SUBTITLE_MARK, TITLE_END = ":", " ./,;="
# What separates the words of a name: "Le Guin, Ursula K." and "Ursula K. Le Guin" have the same words.
NAME_SEPARATORS = " ,.-"
COUNTED_LETTERS = "aeinor"
# The longest part of a title that an index row of PostgreSQL holds in any script.
MAX_KEY_TITLE = 100
NUMBER = re.compile(r"\d+")
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
    """The match key of a book, as an expression with an index."""

    output_field = models.TextField()

    def __init__(self) -> None:
        super().__init__("title_folded", "author_folded")

    def as_sql(self, compiler: Any, connection: Any, *_: Any, **__: Any) -> Any:
        title, author = (compiler.compile(column)[0] for column in self.get_source_expressions())
        return f"({compile_match_key(connection.vendor, title, author)})", []


def build_match_key(title: str, author: str) -> str:
    """Returns the match key of a folded title and author, as the database computes it."""
    main_title = split_title(title)[0][:MAX_KEY_TITLE]
    name = author.translate(str.maketrans("", "", NAME_SEPARATORS))
    return " ".join([main_title, str(len(name)), *(str(author.count(letter)) for letter in COUNTED_LETTERS)])


def split_title(title: str) -> tuple[str, str]:
    """Returns the title without its subtitle, and the subtitle."""
    main_title, _, subtitle = title.partition(SUBTITLE_MARK)
    return main_title.rstrip(TITLE_END), subtitle


class Work(NamedTuple):
    """Title and author of a book, as far as the writings of two catalogues agree."""

    title: str
    # The numbers of a subtitle tell the volumes of a work apart.
    numbers: tuple[str, ...]
    names: tuple[str, ...]


def build_work(title: str, author: str) -> Work:
    """Two books with folded titles and authors of the same work are possible duplicates."""
    main_title, subtitle = split_title(title)
    names = author.translate(str.maketrans(NAME_SEPARATORS, " " * len(NAME_SEPARATORS))).split()
    return Work(main_title or title, tuple(NUMBER.findall(subtitle)), tuple(sorted(names)))
