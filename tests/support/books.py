"""Valid bodies for the creation of books, and an actor for changes of which nobody asks who made them."""

from itertools import count
from math import inf
from typing import Any

from stdnum import ean

from books.history.actors import ActorRef
from books.search.texts import Sample

# In characters. The specification sets no bounds; these are the ones that the library documents.
MAX_LENGTHS = {"title": 1000, "author": 500, "isbn": 64, "genre": 200}
serial_numbers = count(1)
ACTOR = ActorRef(0)
# In place of the one that a process reads now and then: no statement reads it.
EMPTY_SAMPLE = Sample(inf, 0, 0, dict.fromkeys(("", "title", "author", "genre"), ""))


def build_book(**fields: Any) -> dict[str, Any]:
    """Returns a valid body with an isbn that no earlier body has."""
    book = {
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": f"isbn-{next(serial_numbers)}",
        "genre": "Novel",
    }
    return {**book, **fields}


def build_isbn(number: int) -> str:
    """Returns a valid ISBN that names no real book (`books.files.seeds`)."""
    digits = f"97999{number:07d}"
    return digits + ean.calc_check_digit(digits)
