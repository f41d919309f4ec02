"""What is proposed where a search finds nothing."""

import pytest

from books.search.similar_texts import find_similar_texts
from tests.support.books_admin import create_book

pytestmark = pytest.mark.usefixtures("db")

BOOKS = [
    ("The Left Hand of Darkness", "Ursula K. Le Guin"),
    ("The Hobbit", "J. R. R. Tolkien"),
    ("Pride and Prejudice", "Jane Austen"),
    ("Emma", "Jane Austen"),
    ("Émile", "Émile Zola"),
    ("Middlemarch", "George Eliot"),
    ("Frankenstein; or, The Modern Prometheus", "Mary Shelley"),
    ("The Late Archive of Delmas", "Hilma Franke"),
    ("Преступление и наказание", "Фёдор Достоевский"),
]
SEARCHES = {
    "the left hand of darkmess": ["The Left Hand of Darkness"],
    "LEFT HAMD": ["The Left Hand of Darkness"],
    "tolkein": ["J. R. R. Tolkien"],
    "jane austin": ["Jane Austen"],
    "jaen austen": ["Jane Austen"],
    "predjudice": ["Pride and Prejudice"],
    "Emmile": ["Émile", "Émile Zola"],
    # No half is right, and the words of another title have most of it together.
    "Middelmarch": ["Middlemarch"],
    # The more similar word comes first, not the shorter text.
    "Frankenstien": ["Frankenstein; or, The Modern Prometheus", "Hilma Franke"],
    "достоевски преступление": [],
    "Достаевский": ["Фёдор Достоевский"],
    "zola tolkien": [],
    # "jane" is not "james" misspelled.
    "james austen": [],
    # The search finds these.
    "austen jane": [],
    "the left hand of darknes": [],
    "emile": [],
    # Only the beginning is the same.
    "hobbyhorse": [],
    "xyzxyz": [],
    "emm": [],
    "": [],
    '"%_*() - AND NOT': [],
}


def test_similar_titles_and_authors_are_found() -> None:
    for title, author in BOOKS:
        create_book(title=title, author=author)
    assert {text: find_similar_texts(text) for text in SEARCHES} == SEARCHES
