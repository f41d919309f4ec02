"""Books to test with."""

from itertools import count
from typing import Any

numbers = count(1)


def new_book(**members: Any) -> dict[str, Any]:
    """A valid body of a creation, its isbn unlike any before."""
    book = {
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": f"isbn-{next(numbers)}",
        "genre": "Novel",
    }
    return {**book, **members}
